"""A function that keeps a value for each key, beside transformWithStateInPandas: `make bench-processors`.

Each epoch has a row of each key, so every row's state is looked up and written. Both have two cores and RocksDB. Kohort
reads topics in memory and Structured Streaming files: neither has a broker, and both write what they have to.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.pipeline.contenders import environment
from benchmarks.processors.rows import FIRST, expected

AIM = 20
"""Times the keys a second of Structured Streaming."""
MISSED = 2
"""The exit code then."""
TITLES = {"kohort": "Kohort, process", "structured": "Structured Streaming, transformWithStateInPandas"}


def main() -> int:
    """Measure; 2 if the aim was missed, which few keys say nothing about."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.processors", description=__doc__)
    parser.add_argument("--keys", type=int, default=20_000, help="of each epoch")
    parser.add_argument("--epochs", type=int, default=5, help="that count, after those that warm up")
    parser.add_argument("--quick", action="store_true", help="few keys: for CI")
    options = parser.parse_args()
    keys, epochs = (100, 1) if options.quick else (options.keys, options.epochs)
    rates = {name: keys / _epoch_s(name, keys, epochs) for name in TITLES}
    console = Console(width=None if Console().is_terminal else 120)
    table = Table("", "keys/s", "ms a key", title=f"{keys:,} keys an epoch, the median of {epochs} epochs")
    for name, rate in rates.items():
        table.add_row(TITLES[name], f"{rate:,.0f}", f"{1000 / rate:.3f}")
    console.print(table)
    return verdict(rates["kohort"] / rates["structured"], console, quick=options.quick)


def verdict(ratio: float, console: Console, *, quick: bool) -> int:
    """Says whether that many times the keys a second are what is aimed at; the exit code."""
    met = ratio >= AIM
    said = "met" if met else "not asked of so few keys" if quick else "MISSED"
    console.print(f"Kohort has {ratio:.1f} × the keys a second; the aim, {AIM} ×, is {said}")
    return 0 if met or quick else MISSED


def _epoch_s(name: str, keys: int, epochs: int) -> float:
    """How long an epoch takes, in s.

    Raises:
        RuntimeError: it came to other totals.
    """
    command = [sys.executable, "-m", f"benchmarks.processors.{name}", str(keys), str(epochs)]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    right = {"keys": keys, "total": expected(keys, FIRST + epochs)}
    if {each: found[each] for each in right} != right or len(found["took"]) != epochs:
        raise RuntimeError(f"{TITLES[name]} came to {found}, not to {right}")
    return median(found["took"])


if __name__ == "__main__":
    sys.exit(main())
