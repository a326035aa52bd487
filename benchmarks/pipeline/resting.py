"""What an instance has in memory at rest, and where: `make bench-memory`.

A Kohort instance of the flights' aggregation, after some epochs, with nothing to do any more. Memory is proportional:
pages that processes share count for each in part (PSS).
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Column, Table

from benchmarks.pipeline import flights as data
from benchmarks.pipeline import tree
from benchmarks.pipeline.contenders import Job, Kohort
from benchmarks.pipeline.instances import Instance
from benchmarks.pipeline.measures import BROKER_SETTINGS, PARTITIONS
from kohort.testing import BrokerProcess
from tests.tools import JAVA, MAVEN

AIM = 600
"""MiB beyond the heap's setting."""
BETWEEN = 2.0
"""Seconds from one tenth of the records to the next."""


def main() -> int:
    """Measure; 1 if there is no Java."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline.resting", description=__doc__)
    parser.add_argument("--records", type=int, default=100_000, help="flights that it reads before")
    parser.add_argument("--rest", type=int, default=30, help="seconds after the last of them")
    parser.add_argument("--quick", action="store_true", help="1,000 records, and a second: for CI")
    options = parser.parse_args()
    pause = BETWEEN
    if options.quick:
        options.records, options.rest, pause = 1_000, 1, 0.2
    console = Console(width=None if Console().is_terminal else 120)
    if missing := [tool.missing for tool in (JAVA, MAVEN) if not tool.is_there()]:  # jcmd comes with a JDK
        console.print(*missing, sep="\n")
        return 1
    with (
        tempfile.TemporaryDirectory(prefix="kohort-bench-", ignore_cleanup_errors=True) as directory,
        BrokerProcess(BROKER_SETTINGS) as broker,
    ):
        job = Job(broker.bootstrap_servers, "resting", "flights", "results", directory)
        topics = [NewTopic(name, PARTITIONS, 1) for name in (job.source, job.results)]
        admin = AdminClient({"bootstrap.servers": job.servers})
        for made in admin.create_topics(topics).values():
            made.result()
        with Instance(Kohort(), job) as instance:
            instance.started()
            _send(job.servers, options.records, pause)
            time.sleep(options.rest)
            console.print(_table(instance.pid))
    return 0


def _send(servers: str, records: int, pause: float) -> None:
    """By tenths, so that there are some epochs."""
    flights = data.load().slice(0, records)
    for each in tenths(flights.num_rows):
        data.fill(servers, "flights", flights.slice(each.start), len(each))
        time.sleep(pause)


def tenths(records: int) -> list[range]:
    """A tenth after the other, of one record at least; what doesn't go into ten comes last."""
    step = max(1, records // 10)
    return [range(start, min(start + step, records)) for start in range(0, records, step)]


def _table(pid: int) -> Table:
    names = {}
    for each in tree.members(pid):
        with contextlib.suppress(OSError):  # it has just ended
            names[each] = _called(each)
    (java,) = [each for each, name in names.items() if name == "JVM"]
    _ask(java, "GC.run")
    committed, used = heap(_ask(java, "GC.heap_info"))
    rows = []
    for each, name in names.items():
        with contextlib.suppress(OSError):
            rows.append((name, _proportional(each), each))
    shown = Table("At rest", Column("MiB", justify="right"))
    for name, size, each in rows:
        shown.add_row(name, f"{size:,.0f}")
        if each == java:
            shown.add_row("  of its heap, committed", f"{committed:,.0f}")
            shown.add_row("    of that, used", f"{used:,.0f}")
    total = sum(size for _, size, _ in rows)
    shown.add_row("all", f"{total:,.0f}")
    shown.add_row(f"without the heap (aim: {AIM})", f"{total - committed:,.0f}")
    return shown


def _called(pid: int) -> str:
    words = _words(pid)
    if words[0].endswith(b"java"):
        return "JVM"
    if (daemon := b"kohort.spark.worker_daemon") in words:
        return "Python worker" if daemon in _words(_parent(pid)) else "what Python workers are forked from"
    return "driver's Python" if b"benchmarks.pipeline.programs.kohort" in words else words[0].decode()


def _words(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def _parent(pid: int) -> int:
    found = re.search(r"^PPid:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def _proportional(pid: int) -> float:
    found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def _ask(java: int, question: str) -> str:
    return subprocess.run(["jcmd", str(java), question], check=True, capture_output=True, text=True).stdout


def heap(told: str) -> tuple[float, float]:
    """The committed and used MiB of a heap, of which `jcmd PID GC.heap_info` has told."""
    sizes = re.findall(r"\btotal (?:reserved \d+K, committed )?(\d+)K, used (\d+)K", told)
    if not sizes:
        raise SystemExit(
            f"What the JVM tells of its heap can't be read (of the collectors Serial, Parallel and G1 it can):\n{told}"
        )
    return sum(int(total) for total, _ in sizes) / 1024, sum(int(used) for _, used in sizes) / 1024


if __name__ == "__main__":
    sys.exit(main())
