"""Kohort beside Structured Streaming, Kafka Streams and quixstreams: the same records, the same broker, in one run.

    make bench-pipeline
    make bench-pipeline BENCH="--case auctions"
    python -m benchmarks.pipeline --replays 1 --seconds 10 --only throughput --contenders kohort structured
    python -m benchmarks.pipeline --rate 500 --only latency --contenders kohort realtime

Each counts delays by origin and hour (count, mean, worst, and the 90th percentile where it can), or with `--case
auctions` bids by auction and day (count, counts by price range, min, max, mean, sum), one after the other, in processes
of its own; an independent consumer reads what is committed. All have the defaults of their makers but for what a
program here says; results are compared with a batch over the same records.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.available import available
from benchmarks.pipeline import flights as data
from benchmarks.pipeline.cases import Auctions, Case, Flights
from benchmarks.pipeline.contenders import CONTENDERS
from benchmarks.pipeline.measures import BROKER_SETTINGS, SETTLING, Bench
from benchmarks.pipeline.run import Run
from kohort.testing import BrokerProcess

CASES: dict[str, type[Case[Any]]] = {case.name: case for case in (Flights, Auctions)}
BIDS = 2_000_000


def main() -> int:
    """Measure; 1 if something failed, was interrupted, or results weren't the batch's."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__.partition("\n")[0])
    names = [contender.name for contender in CONTENDERS]
    parser.add_argument("--case", nargs="+", choices=CASES, default=["flights"], metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--replays", type=float, default=10, help="how often the year's flights are there")
    parser.add_argument("--records", type=int, help=f"instead of replays; bids are {BIDS:,}")
    parser.add_argument("--rate", type=int, default=5_000, help="the steady rate, records a second")
    parser.add_argument("--seconds", type=int, default=30, help="how long the steady rate is measured")
    parser.add_argument(
        "--settling", type=int, default=SETTLING, help="for how many seconds before; by default %(default)s"
    )
    parser.add_argument("--only", nargs="+", choices=Flights.measures, default=Flights.measures, metavar="MEASURE")
    parser.add_argument("--contenders", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too; one a case, of several")
    parser.add_argument("--quick", action="store_true", help="2,000 records and throughput alone: for CI")
    options = parser.parse_args()
    if options.quick:
        options.records, options.only = 2_000, ("throughput",)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl+C: nothing is left behind, or lost
    console = Console(width=None if Console().is_terminal else 160)
    chosen = [each for each in CONTENDERS if each.name in options.contenders]
    runs = {
        name: Run(available((each for each in chosen if name in each.cases), console), console) for name in options.case
    }
    if not any(run.contenders for run in runs.values()):
        return 1
    interrupted = False
    try:
        for name, run in runs.items():
            _measure(name, run, options, console)
    except KeyboardInterrupt:
        interrupted = True
        console.print("interrupted; until then it found:")
    finally:
        for name, run in runs.items():
            run.report(CASES[name], options.rate, _file(options.json, name, len(runs)))
    return 1 if interrupted or any(run.wrong for run in runs.values()) else 0


def _file(file: Path | None, case: str, cases: int) -> Path | None:
    return file if file is None or cases == 1 else file.with_stem(f"{file.stem}-{case}")


def _measure(name: str, run: Run, options: argparse.Namespace, console: Console) -> None:
    with (
        console.status("") as status,
        tempfile.TemporaryDirectory(prefix="kohort-bench-", ignore_cleanup_errors=True) as directory,
    ):
        run.prepare(status.update)
        case: Case[Any]
        if name == Flights.name:
            status.update("reading the flights")
            flights = data.load()
            case, records = Flights(flights), options.records or int(options.replays * flights.num_rows)
        else:
            case, records = Auctions(), options.records or BIDS
        with BrokerProcess(BROKER_SETTINGS) as broker:
            bench = Bench(
                broker,
                case,
                Path(directory),
                records=records,
                rate=options.rate,
                seconds=options.seconds,
                say=status.update,
                settling=options.settling,
            )
            run.measure(bench, [measure for measure in options.only if measure in case.measures])


if __name__ == "__main__":
    sys.exit(main())
