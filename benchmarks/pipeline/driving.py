"""What an instance's driver can do, however many executors it has: `make bench-driver`.

All keys that an epoch touches pass through the driver: it looks their values up, takes the rows that executors make of
them, writes them to the changelog and to its stores. Here only that is done, with what 2, 16 or 64 cores of executors
have prepared, one task for each. The JVM's share, which hands Spark's results on, isn't in it.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from benchmarks.pipeline.contenders import environment
from benchmarks.pipeline.programs.driver import STEPS, Figures
from kohort.testing import BrokerProcess

AIM = 500_000
"""Touched keys a second."""
KEYS = 1_000_000
"""Of the state."""
TOUCHED, CORES = [10_000, 100_000, 1_000_000], [2, 16, 64]
MEASURED, EPOCHS = 500_000, 3
"""Touched keys of a case, over all its epochs, at least; and epochs at least."""


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline.driving", description=__doc__)
    parser.add_argument("--keys", type=int, default=KEYS, help="of the state")
    parser.add_argument("--touched", type=int, nargs="+", default=TOUCHED, help="keys of an epoch, one after the other")
    parser.add_argument("--cores", type=int, nargs="+", default=CORES, help="of executors, and tasks")
    parser.add_argument("--quick", action="store_true", help="few keys: for CI")
    options = parser.parse_args()
    measured = MEASURED
    if options.quick:
        options.keys, options.touched, options.cores, measured = 5_000, [1_000], [2, 4], 1_000
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl+C: nothing is left behind
    console = Console(width=None if Console().is_terminal else 120)
    for touched in options.touched:
        found = {
            cores: _measure(options.keys, touched, cores, max(EPOCHS, measured // touched)) for cores in options.cores
        }
        console.print(_table(found, touched))
    return 0


def _measure(keys: int, touched: int, cores: int, epochs: int) -> Figures:
    """With a broker and stores of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="kohort-bench-", ignore_cleanup_errors=True) as directory,
        BrokerProcess() as broker,
    ):
        given = {
            "servers": broker.bootstrap_servers,
            "broker": broker.pid,
            "touched": touched,
            "partitions": cores,
            "keys": keys,
            "epochs": epochs,
            "directory": str(Path(directory) / "state"),
        }
        command = [sys.executable, "-m", "benchmarks.pipeline.programs.driver", json.dumps(given)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment())
    return Figures(**json.loads(done.stdout))


def _table(found: dict[int, Figures], touched: int) -> Table:
    titles = [f"{cores} cores" for cores in found]
    shown = Table(Column(f"{touched:,} keys an epoch"), *(Column(title, justify="right") for title in titles))

    def row(title: str, shows: Callable[[Figures], str]) -> None:
        shown.add_row(title, *(shows(each) for each in found.values()))

    def micros(title: str, seconds: Callable[[Figures], float]) -> None:
        row(title, lambda each: f"{seconds(each) / each.touched * 1e6:.2f} µs")

    row(f"touched keys/s (aim: {AIM:,})", lambda each: f"{each.touched / sum(each.seconds.values()):,.0f}")
    micros("time a key", lambda each: sum(each.seconds.values()))
    micros("processor time a key", lambda each: sum(each.cpu.values()))
    for step in STEPS:
        micros(f"  {step}", partial(_cpu, step))
    micros("  beside it, of the broker", lambda each: each.broker)
    row("most memory", lambda each: f"{each.memory:,.0f} MiB")
    return shown


def _cpu(step: str, figures: Figures) -> float:
    return figures.cpu[step]


if __name__ == "__main__":
    sys.exit(main())
