"""How long the command takes to start, beside a Python that does nothing.

make bench-startup
python benchmarks/startup.py --quick
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

KOHORT = str(Path(sys.executable).with_name("kohort"))
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "kohort --version": [KOHORT, "--version"],
    "kohort --help": [KOHORT, "--help"],
    "kohort wire list": [KOHORT, "wire", "list"],
    "kohort wire decode (Heartbeat)": [KOHORT, "wire", "decode", "--api", "Heartbeat", "0241000000070242" + "0000"],
}


def milliseconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(prog="python benchmarks/startup.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one round: for CI")
    rounds = 1 if parser.parse_args().quick else 21
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, command in COMMANDS.items():
            taken[name].append(milliseconds(command))
    table = Table(title=f"Start-up: ms, {rounds} runs in turns")
    for column in ("Command", "median", "fastest", "slowest"):
        table.add_column(column, justify="left" if column == "Command" else "right")
    for name, times in taken.items():
        table.add_row(name, *(f"{value:.0f}" for value in (statistics.median(times), min(times), max(times))))
    Console().print(table)


if __name__ == "__main__":
    main()
