"""A query by Kohort.

Usage: python -m benchmarks.nexmark.programs.kohort OPTIONS, JSON: servers, application, source (the prefix of topics),
results, directory, standbys, case (the query). There is a journal in the directory.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from benchmarks.nexmark import queries
from benchmarks.nexmark.sources import Sources
from benchmarks.pipeline.programs.kohort import run
from kohort.spark import StreamsApp


def main(case: str, **job: Any) -> None:
    def program(app: StreamsApp, source: str, results: str) -> None:
        queries.program(case)(Sources(app, source), results)

    run(program, "2g", settings={"spark.sql.session.timeZone": "UTC"}, **job)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
