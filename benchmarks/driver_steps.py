"""How long the test driver takes for a program and for a step, in a session that all share: `make bench-test-driver`.

A program is new to the session when its driver is entered, as in a test: it is compiled, and its first step builds its
plans and has code made for them. Later steps run the same plans again. All pipe two rows. Processor time is the whole
process tree's: Python, the JVM and Python workers. Then sessions are started, with an archive of Spark's classes and
without.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any, Final, NamedTuple

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks.pipeline.tree import cpu_seconds, members
from kohort.spark import StreamsApp, avg, count, value_state, window
from kohort.spark.class_archive import archive_path, jvm_options, option
from kohort.spark.program.streams import Stream
from kohort.spark.testing import TestDriver
from kohort.spark.testing.session import local_session
from tests.tools import JAVA, need

FIRST_S: Final = 5.0
"""The aim: from a program to the outputs of its first step, in s."""
LATER_MS: Final = 100.0
"""The aim: a later step, in ms."""
FLIGHTS: Final = "carrier STRING, origin STRING, delay DOUBLE, at TIMESTAMP"
NAMES: Final = [{"carrier": "AA", "name": "American"}, {"carrier": "UA", "name": "United"}]


class Figures(NamedTuple):
    """Of one program: seconds until the first step is done, then of each later one, and processor seconds of those."""

    first: float
    later: list[float]
    cpu: float


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.driver_steps", description=__doc__)
    parser.add_argument("--steps", type=int, default=20, help="of each program, after its first")
    parser.add_argument("--quick", action="store_true", help="two programs, two steps, a session, few classes: for CI")
    parser.add_argument("--sessions", type=int, default=5, help="with an archive of classes, and without; 0 for none")
    parser.add_argument("--once", action="store_true", help="only start a session, and print what that takes")
    parser.add_argument("--archive", action="store_true", help="only make an archive of a session's own classes")
    options = parser.parse_args()
    need(JAVA)
    if options.once:
        print(json.dumps(started()))
        return 0
    if options.archive:
        archive_of_a_session()
        return 0
    began = time.perf_counter()
    local_session()
    session = time.perf_counter() - began
    there = "with" if jvm_options() else "without"
    names, steps = (list(PROGRAMS)[-2:], 2) if options.quick else (list(PROGRAMS), options.steps)
    found = {name: measured(PROGRAMS[name], steps) for name in names}
    table = Table(
        "",
        title=f"Two rows a step, {steps} later steps; Spark's session took {session:.1f} s before, {there} archive",
    )
    for title in ("first step, s", "later, median ms", "longest, ms", "processor ms a step"):
        table.add_column(title, justify="right")
    for name, each in found.items():
        times = f"{median(each.later) * 1000:.0f}", f"{max(each.later) * 1000:.0f}"
        table.add_row(name, f"{each.first:.2f}", *times, f"{each.cpu / len(each.later) * 1000:.0f}")
    console = Console(width=None if Console().is_terminal else 120)
    console.print(table)
    first = max(each.first for each in found.values())
    later = max(median(each.later) for each in found.values()) * 1000
    console.print(f"First steps take {first:.2f} s at most; the aim, {FIRST_S:.0f} s, is {_met(first <= FIRST_S)}")
    with tempfile.TemporaryDirectory() as cache:
        compare(console, options.sessions, cache, quick=options.quick)
    console.print(f"Later ones take {later:.0f} ms at most; the aim, {LATER_MS:.0f} ms, is {_met(later <= LATER_MS)}")
    return 0


def started() -> tuple[float, float]:
    """Seconds that this process's session takes to start, and from there until a program's first step is done."""
    began = time.perf_counter()
    local_session()
    return time.perf_counter() - began, measured(filtered, 1).first


def archive_of_a_session() -> None:
    """An archive with few classes, in a cache without any: the JVM writes it when it ends, after this process."""
    path = archive_path()
    if path is None:
        raise RuntimeError("there is no Java whose version is known")
    path.parent.mkdir(parents=True)  # fails rather than put it in a better one's place
    local_session(jvm=option("ArchiveClassesAtExit", path)).stop()


def compare(console: Console, sessions: int, cache: str, *, quick: bool) -> None:
    """Sessions of processes of their own, by turns without an archive of Spark's classes and with one.

    Quickly, it is one with an archive that no programs were run for: the command runs some for most of a minute.
    """
    if not sessions:
        return
    here = [sys.executable, "-W", "ignore", "-m"]
    with_archive = {**os.environ, "XDG_CACHE_HOME": cache}
    turns = {"without": {**os.environ, "XDG_CACHE_HOME": f"{cache}/none"}, "with": with_archive}
    make = ["kohort.cli", "apps", "class-archive"]
    if quick:
        sessions, turns, make = 1, {"with": with_archive}, ["benchmarks.driver_steps", "--archive"]
    began = time.perf_counter()
    subprocess.run([*here, *make], env=with_archive, check=True, capture_output=True)  # it waits for the JVM, too
    console.print(f"An archive of classes is made in {time.perf_counter() - began:.0f} s")
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
    for _ in range(sessions):
        for name, environment in turns.items():
            said = subprocess.run(
                [*here, "benchmarks.driver_steps", "--once"], env=environment, check=True, capture_output=True
            )
            found[name].append(tuple(json.loads(said.stdout)))
    table = Table("", title=f"In a process of its own, medians of {sessions}")
    for title in ("session, s", "first step of a program after it, s"):
        table.add_column(title, justify="right")
    for name, each in found.items():
        table.add_row(f"{name} archive", *(f"{median(times):.1f}" for times in zip(*each, strict=True)))
    console.print(table)


def measured(program: Callable[[Stream, StreamsApp], Any], steps: int) -> Figures:
    """A program's figures."""
    began = time.perf_counter()
    app = StreamsApp(program.__name__.replace("_", "-"), bootstrap_servers="127.0.0.1:1")
    program(app.stream("flights", schema=FLIGHTS, key="carrier", event_time="at"), app).to("out")
    with TestDriver(app) as driver:
        if program in (table_join, joined_and_repartitioned):
            driver.pipe("airlines", NAMES, step=False)
        driver.pipe("flights", rows(0))
        first = time.perf_counter() - began
        written = len(driver.output("out"))
        cpu = cpu_seconds(members(os.getpid()))
        later = []
        for number in range(1, steps + 1):
            began = time.perf_counter()
            driver.pipe("flights", rows(number))
            later.append(time.perf_counter() - began)
            written += len(driver.output("out"))
        cpu = cpu_seconds(members(os.getpid())) - cpu
    if written != 2 * (steps + 1):
        raise RuntimeError(f"{program.__name__} has written {written} rows in {steps + 1} steps of two")
    return Figures(first, later, cpu)


def rows(number: int) -> list[dict[str, Any]]:
    """The rows of a step: one of each carrier."""
    at = f"2013-01-01T05:{number % 60:02}:00Z"
    return [
        {"carrier": "AA", "origin": "JFK", "delay": 10.0 + number, "at": at},
        {"carrier": "UA", "origin": "LGA", "delay": 20.0 + number, "at": at},
    ]


def filtered(flights: Stream, _: StreamsApp) -> Any:
    """Rows one by one."""
    return flights.where("delay > 0")


def aggregate(flights: Stream, _: StreamsApp) -> Any:
    """Rows of a key, merged with the store."""
    return flights.group_by("carrier").aggregate("delays", n=count(), mean=avg("delay"))


def aggregate_of_windows(flights: Stream, _: StreamsApp) -> Any:
    """The same by another column and the hour, through a repartition topic."""
    grouped = flights.group_by("origin", window("at", "1 hour", grace="10 minutes"))
    return grouped.aggregate("delays", n=count(), mean=avg("delay"))


def function(flights: Stream, _: StreamsApp) -> Any:
    """A function that keeps a row for each key."""
    states = {"last": value_state("delay DOUBLE")}
    return flights.group_by("carrier").process("last", _last, output="carrier STRING, delay DOUBLE", states=states)


def table_join(flights: Stream, app: StreamsApp) -> Any:
    """Rows with a table's."""
    return flights.join(app.table("airlines", schema="carrier STRING, name STRING", key="carrier"), "carrier")


def joined_and_repartitioned(flights: Stream, app: StreamsApp) -> Any:
    """The program of docs/testing.md."""
    joined = table_join(flights, app).group_by("name", window("at", "1 hour", grace="10 minutes"))
    return joined.aggregate("by-hour", n=count(), mean=avg("delay"))


def _last(flights: pa.Table, state: Any) -> pa.Table:
    state["last"].get()
    now = flights.select(["carrier", "delay"])
    state["last"].put(now)
    return now


def _met(is_met: bool) -> str:
    return "met" if is_met else "missed"


PROGRAMS: Final[dict[str, Callable[[Stream, StreamsApp], Any]]] = {
    "where": filtered,
    "aggregate": aggregate,
    "aggregate of windows, repartitioned": aggregate_of_windows,
    "function with state": function,
    "join with a table": table_join,
    "join with a table, aggregate of windows": joined_and_repartitioned,
}


if __name__ == "__main__":
    sys.exit(main())
