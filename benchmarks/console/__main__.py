"""What the console takes on a large cluster: time to a page, bytes of pages and updates, memory, processor time.

    make bench-console
    python -m benchmarks.console --quick

The cluster is a stand-in that speaks the protocol, with 10,000 groups and 100,000 partitions. Ends and commits grow all
the time, so each look changes all rows of an open page; but nine of ten groups whose names have "still" in them have
read all of a topic that nobody writes to. The console runs in a process of its own, as a user starts it.

Exits with 1 if an aim is missed: on a small cluster (`--quick`), which isn't what they are for, it only says so.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.table import Table

from benchmarks import results

AIM_S = 1.0
"""For the first page, and for the median of each page."""

PAGES = {
    "groups, first page": "/groups",
    "groups by lag": "/groups?sort=lag",
    "a group": "/group?id=group-00007",
    "topics, first page": "/topics",
    "a topic": "/topic?name=topic-00007",
    "the wire": "/wire",
}


@contextmanager
def started(*command: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process, and the first line that it says."""
    with subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True) as process:
        try:
            out: IO[str] | None = process.stdout
            assert out is not None
            line = out.readline().strip()
            if not line:
                raise RuntimeError(f"{command[0]} ended with {process.wait()}")
            yield process, line
        finally:
            process.kill()


def processor_s(pid: int) -> float:
    """Processor time that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int, what: str = "VmRSS") -> float:
    line = next(each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith(what))
    return int(line.split()[1]) / 1024


def page(address: str, path: str) -> tuple[float, int]:
    """Seconds, and bytes, of a page."""
    began = time.perf_counter()
    with urllib.request.urlopen(address.rstrip("/") + path) as answer:
        size = len(answer.read())
    return time.perf_counter() - began, size


def updates(address: str, path: str, seconds: float) -> list[int]:
    """The bytes of what an open page is told within a time: first all of it, then what changed."""
    found = []
    ends = time.monotonic() + seconds
    with urllib.request.urlopen(address.rstrip("/") + path) as stream:
        while time.monotonic() < ends or len(found) < 3:
            line = stream.readline()
            if line.startswith(b"data: "):
                json.loads(line.removeprefix(b"data: "))
                found.append(len(line))
    return found


def measure(
    groups: int, topics: int, partitions: int, rounds: int, seconds: float, console: Console
) -> dict[str, dict[str, float]]:
    """Prints what was measured, and returns it: ms of pages, and what an open page costs."""
    figures: dict[str, dict[str, float]] = {}
    with started("benchmarks.console.stand_in", str(groups), str(topics), str(partitions)) as (_, servers):
        began = time.perf_counter()
        with started("kohort.cli", "console", "--port", "0", "-b", servers) as (process, address):
            ready = time.perf_counter() - began
            first, _ = page(address, "/groups")
            table = Table(title=f"The console, of {groups:,} groups and {topics * partitions:,} partitions")
            for column in ("Page", "ms, median", "slowest", "KiB"):
                table.add_column(column, justify="left" if column == "Page" else "right")
            for name, path in PAGES.items():
                taken = [page(address, path) for _ in range(rounds)]
                times = [seconds_taken * 1e3 for seconds_taken, _ in taken]
                size = max(size for _, size in taken)
                figures[f"page {name}, ms"] = {"Kohort": statistics.median(times)}
                table.add_row(name, f"{statistics.median(times):.0f}", f"{max(times):.0f}", f"{size / 1024:.0f}")
            console.print(table)
            before, at = processor_s(process.pid), time.monotonic()
            time.sleep(seconds)
            idle = (processor_s(process.pid) - before) / (time.monotonic() - at)
            before, at = processor_s(process.pid), time.monotonic()
            told = updates(address, "/groups/events", seconds)
            open_page = (processor_s(process.pid) - before) / (time.monotonic() - at)
            mostly_still = updates(address, "/groups/events?q=still", seconds)
            facts = {
                "started, with a first look": f"{ready:.2f} s",
                "then the first page": f"{first:.2f} s (aim: {AIM_S:g} s)",
                "an open page of groups: the whole": f"{told[0] / 1024:.1f} KiB",
                "an update of it, in which all 50 rows change": f"{max(told[1:]) / 1024:.1f} KiB",
                "the same, where 90 % of groups are still": f"{statistics.median(mostly_still[2:]) / 1024:.1f} KiB",
                "processor, nobody looking": f"{idle:.0%} of a core",
                "processor, with an open page": f"{open_page:.0%} of a core",
                "processor time of a look": f"{open_page * seconds / max(1, len(told) - 1):.2f} s",
                "memory": f"{memory_mib(process.pid):.0f} MiB, at most {memory_mib(process.pid, 'VmHWM'):.0f}",
            }
            for name, value in facts.items():
                console.print(f"{name}: {value}", highlight=False)
            measured = {
                "ready, s": ready,
                "first page, s": first,
                "idle, cores": idle,
                "open page, cores": open_page,
                "memory, MiB": memory_mib(process.pid),
            }
            return figures | {name: {"Kohort": value} for name, value in measured.items()}


def check(figures: Mapping[str, Mapping[str, float]], console: Console) -> int:
    """Says which pages took longer than the aim; returns what the program exits with."""
    seconds = {"first page": figures["first page, s"]["Kohort"]}
    seconds |= {
        name.removesuffix(", ms"): its["Kohort"] / 1e3 for name, its in figures.items() if name.endswith(", ms")
    }
    late = {name: each for name, each in seconds.items() if each > AIM_S}
    for name, each in late.items():
        console.print(f"missed: {name} {each:.2f} s (aim: {AIM_S:g} s)", style="red", highlight=False)
    return 1 if late else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small cluster: for CI")
    results.add_option(parser)
    options = parser.parse_args()
    much = (100, 20, 10, 2, 3) if options.quick else (10_000, 1_000, 100, 15, 60)
    console = Console()
    figures = measure(*much, console)
    results.save(options.json, {"figures": figures})
    late = check(figures, console)
    return 0 if options.quick else late


if __name__ == "__main__":
    sys.exit(main())
