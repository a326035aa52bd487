"""Kohort beside Structured Streaming, Kafka Streams and quixstreams: the same flights, the same broker, in one run.

    make bench-pipeline
    python -m benchmarks.pipeline --replays 1 --seconds 10 --only throughput --contenders kohort structured

Each counts delays by origin and hour (count, mean, worst, and the 90th percentile where it can), one after the other,
in processes of its own; an independent consumer reads what is committed. All have the defaults of their makers but for
what a program here says; results are compared with a batch over the same flights.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from benchmarks.pipeline import flights as data
from benchmarks.pipeline.contenders import CONTENDERS, Contender
from benchmarks.pipeline.measures import BROKER_SETTINGS, Bench
from benchmarks.pipeline.run import Run
from kohort.testing import BrokerProcess

MEASURES = ("start", "throughput", "latency", "pause", "epochs", "reading")


def main() -> int:
    """Measure; 1 if something failed, was interrupted, or results weren't the batch's."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__.partition("\n")[0])
    names = [contender.name for contender in CONTENDERS]
    parser.add_argument("--replays", type=float, default=10, help="how often the year's flights are there")
    parser.add_argument("--records", type=int, help="instead of replays")
    parser.add_argument("--rate", type=int, default=5_000, help="the steady rate, records a second")
    parser.add_argument("--seconds", type=int, default=30, help="how long the steady rate is measured")
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=MEASURES, metavar="MEASURE")
    parser.add_argument("--contenders", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--quick", action="store_true", help="2,000 records and throughput alone: for CI")
    options = parser.parse_args()
    if options.quick:
        options.records, options.only = 2_000, ("throughput",)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl+C: nothing is left behind, or lost
    console = Console(width=None if Console().is_terminal else 160)
    there = _there(options.contenders, console)
    if not there:
        return 1
    run = Run(there, console)
    interrupted = False
    try:
        _measure(run, options, console)
    except KeyboardInterrupt:
        interrupted = True
        console.print("interrupted; until then it found:")
    finally:
        run.report(options.rate, options.json)
    return 1 if interrupted or run.wrong else 0


def _there(names: list[str], console: Console) -> list[Contender]:
    """Those that can run on this machine."""
    found = []
    for contender in CONTENDERS:
        if contender.name in names:
            if missing := contender.missing():
                console.print(f"without {contender.title}: {missing}")
            else:
                found.append(contender)
    return found


def _measure(run: Run, options: argparse.Namespace, console: Console) -> None:
    with (
        console.status("") as status,
        tempfile.TemporaryDirectory(prefix="kohort-bench-", ignore_cleanup_errors=True) as directory,
    ):
        run.prepare(status.update)
        status.update("reading the flights")
        flights = data.load()
        with BrokerProcess(BROKER_SETTINGS) as broker:
            bench = Bench(
                broker,
                flights,
                Path(directory),
                records=options.records or int(options.replays * flights.num_rows),
                rate=options.rate,
                seconds=options.seconds,
                say=status.update,
            )
            run.measure(bench, options.only)


if __name__ == "__main__":
    sys.exit(main())
