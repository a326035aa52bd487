"""How long the command takes to start, beside a Python that does nothing.

make bench-startup
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROUNDS = 21
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


if __name__ == "__main__":
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, command in COMMANDS.items():
            taken[name].append(milliseconds(command))
    table = Table(title=f"Start-up: ms, {ROUNDS} runs in turns")
    for column in ("Command", "median", "fastest", "slowest"):
        table.add_column(column, justify="left" if column == "Command" else "right")
    for name, times in taken.items():
        table.add_row(name, *(f"{value:.0f}" for value in (statistics.median(times), min(times), max(times))))
    Console().print(table)
