"""A query by Kohort.

Usage: python -m benchmarks.nexmark.programs.kohort OPTIONS, JSON: servers, application, source (the prefix of topics),
results, directory, standbys, case (the query). There is a journal in the directory.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.nexmark import queries
from benchmarks.nexmark.sources import Sources
from benchmarks.pipeline.programs.kohort import Teller, phase
from kohort.spark import StreamsApp


def main(servers: str, application: str, source: str, results: str, directory: str, standbys: int, case: str) -> None:
    phase("Python has its imports")
    spark = (
        SparkSession.builder.master("local[*]")
        .appName(application)
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    phase("there is a Spark session")
    app = StreamsApp(
        application,
        bootstrap_servers=servers,
        num_standby_replicas=standbys,
        state_dir=directory,
        journal=Path(directory, f"{Path(directory).name}.jsonl"),
    )
    queries.program(case)(Sources(app, source), results)
    app.run(spark, listeners=[Teller()], progress=False)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
