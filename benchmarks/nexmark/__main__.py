"""Nexmark's queries by Kohort, Structured Streaming and Kafka Streams: the same events, the same broker, in one run.

    make bench-nexmark
    make bench-nexmark BENCH="--queries q0,q17"
    python -m benchmarks.nexmark --records 200000 --contenders kohort

Each query is answered by one contender after the other, in processes of its own, over events that are all there. An
independent consumer reads what is committed; results are compared with a batch, plain Spark over the same events. What
a contender can't say isn't asked of it. Programs are in queries/ and programs/, the batch's SQL is in batch.py.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from benchmarks import results
from benchmarks.available import available
from benchmarks.nexmark import figures
from benchmarks.nexmark.batch import QUERIES
from benchmarks.nexmark.bench import Answers, NexmarkBench, QueryCase
from benchmarks.nexmark.contenders import CONTENDERS
from benchmarks.pipeline.measures import BROKER_SETTINGS
from benchmarks.pipeline.run import Run
from kohort.testing import BrokerProcess

EVENTS = 2_000_000
QUICK_EVENTS, QUICK_QUERIES = 3_000, "q0,q7"
"""One whose results all count, and one whose later results replace earlier ones, which all contenders say."""


def main() -> int:
    """Measure; 1 if something failed, was interrupted, or results weren't the batch's."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nexmark", description=__doc__.partition("\n")[0])
    names = [contender.name for contender in CONTENDERS]
    parser.add_argument("--queries", help="as q0,q17; by default all that Kohort says")
    parser.add_argument("--records", type=int, default=EVENTS, help=f"events; by default {EVENTS:,}")
    parser.add_argument("--contenders", nargs="+", choices=names, default=names, metavar="NAME")
    results.add_option(parser)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_EVENTS:,} events and {QUICK_QUERIES}: for CI")
    options = parser.parse_args()
    if options.quick:
        options.records, options.queries = QUICK_EVENTS, options.queries or QUICK_QUERIES
    queries = options.queries.split(",") if options.queries else list(CONTENDERS[0].cases)
    if unknown := [query for query in queries if query not in QUERIES]:
        parser.error(f"no such query: {', '.join(unknown)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl+C: nothing is left behind, or lost
    console = Console(width=None if Console().is_terminal else 180)
    contenders = available((each for each in CONTENDERS if each.name in options.contenders), console)
    runs = {
        query: Run(those, console)
        for query in queries
        if (those := [contender for contender in contenders if query in contender.cases])
    }
    if not runs:
        return 1
    interrupted = False
    try:
        _measure(runs, options.records, console)
    except KeyboardInterrupt:
        interrupted = True
        console.print("interrupted; until then it found:")
    finally:
        found = {query: run.found for query, run in runs.items()}
        about = {"events": options.records, "queries": figures.measured(found, contenders)}
        results.save(options.json, {"figures": figures.rates(found, contenders), **about})
        console.print(figures.table(found, contenders, options.records))
    return 1 if interrupted or any(run.wrong for run in runs.values()) else 0


def _measure(runs: dict[str, Run], events: int, console: Console) -> None:
    with (
        console.status("") as status,
        tempfile.TemporaryDirectory(prefix="kohort-bench-", ignore_cleanup_errors=True) as directory,
    ):
        for run in runs.values():
            run.prepare(status.update)
        status.update("answering the queries in a batch")
        answers = Answers(Path(directory, "batch"), events, list(runs))
        cases = {query: QueryCase(query, answers) for query in runs}
        with BrokerProcess(BROKER_SETTINGS) as broker:
            bench = NexmarkBench(
                broker,
                next(iter(cases.values())),
                Path(directory),
                records=events,
                rate=0,
                seconds=0,
                say=status.update,
            )
            for query, run in runs.items():
                bench.case = cases[query]
                console.print(f"{query}: {bench.case.title}")
                run.measure(bench, QueryCase.measures)


if __name__ == "__main__":
    sys.exit(main())
