"""Work queues beside a stream, and beside a share consumer without Spark: `make bench-queues`.

The rows are in one partition, and all contenders do the same with each: they hash its text and write the hash to a
topic. In the first part that is all; in the second each row waits besides, as for an answer from elsewhere. All workers
are on this machine, with a core of Spark each: where they wait for processors, more of them aren't faster. The clock
runs from the first row that is written until the last result is read, with workers that have done some rows before.

The latency is that of single rows, ten a second, from when they are written until their results are read; they are
acknowledged right after. Then one of two workers is killed while such rows come: how long the row that took longest has
taken. Locks end after 15 s, or as soon as the broker sees that a worker's connection is closed.
"""

from __future__ import annotations

import argparse
import itertools
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from rich.console import Console
from rich.table import Table

from benchmarks.broker import peers
from benchmarks.queues.contenders import CONTENDERS, Contender, Workers
from benchmarks.queues.rows import Results, Rows
from tests.interop.topics import create_topic
from tests.tools import JAVA, need

WORKS: Final = ("hash", "wait")
WAIT_MS: Final = 5
WARM_UP: Final = 2_000
PATIENCE_S: Final = 300.0
LOCK_S: Final = 15


@dataclass(frozen=True)
class Scale:
    """How much.

    Attributes:
        hashed, waiting, single: rows to hash, rows that wait, single rows.
        workers: the most.
        again_s: seconds in which rows that a killed worker had may come again.
        in_turns: each contender does one of the works, and the next one the other.
    """

    hashed: int
    waiting: int
    workers: int
    single: int
    again_s: float
    in_turns: bool = False

    def works(self, contender: int) -> tuple[str, ...]:
        """What the contender with that number does."""
        return (WORKS[contender % len(WORKS)],) if self.in_turns else WORKS


FULL = Scale(100_000, 5_000, 4, 100, LOCK_S)
QUICK = Scale(2_000, 200, 1, 10, 1, in_turns=True)


@dataclass
class Measured:
    """A row of the table. Rates in rows/s, by work; latencies in ms."""

    contender: Contender
    workers: int
    rates: dict[str, float]
    median_ms: float | None = None
    p95_ms: float | None = None


class Benchmark:
    """The broker, and who works on its rows."""

    def __init__(self, servers: str, directory: Path, scale: Scale) -> None:
        self._servers, self._directory, self._scale = servers, directory, scale
        self._names = (f"rows-{number}" for number in itertools.count())

    def measured(self, contender: Contender, workers: int) -> Measured:
        """A contender with so many workers."""
        found = Measured(contender, workers, {})
        for work in self._scale.works(CONTENDERS.index(contender)):
            count, ms = {"hash": (self._scale.hashed, 0), "wait": (self._scale.waiting, WAIT_MS)}[work]
            with self._running(contender, workers, work, ms) as (rows, results, processes):
                found.rates[work] = self._rate(count, rows, results, processes)
                if work == "hash" and workers == 1:
                    results.begin_at(count)
                    self._trickle(self._scale.single, rows, results, processes, first=count)
                    found.median_ms, found.p95_ms = results.median_ms(), results.percentile_95_ms()
        return found

    def recovery_s(self, contender: Contender) -> tuple[float, int]:
        """The longest that a row takes when one of two workers is killed; and how many were done twice."""
        with self._running(contender, 2, "wait", WAIT_MS) as (rows, results, processes):
            count = self._scale.single
            self._trickle(count, rows, results, processes, kill_at=count // 3)
            end = time.monotonic() + self._scale.again_s  # what the killed one had locked may yet come again
            while time.monotonic() < end:
                self._read(results, processes, end + PATIENCE_S)
            return max(results.taken.values()), results.again

    @contextmanager
    def _running(
        self, contender: Contender, workers: int, work: str, ms: int
    ) -> Iterator[tuple[Rows, Results, Workers]]:
        """Workers that have all done something."""
        name = next(self._names)
        admin = AdminClient({"bootstrap.servers": self._servers})
        for topic in (f"{name}-rows", f"{name}-done"):
            create_topic(admin, topic, 1)
        earliest = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
        group = ConfigResource(ResourceType.GROUP, name, incremental_configs=[earliest])
        admin.incremental_alter_configs([group])[group].result()
        rows, results = Rows(self._servers, name, ms), Results(self._servers, name)
        with Workers(contender, self._servers, name, work, self._directory) as processes:
            processes.start(workers)
            written = 0
            deadline = time.monotonic() + PATIENCE_S
            while len(results.workers) < workers or results.warm < written:
                if results.warm >= written:
                    rows.warm_up(WARM_UP)
                    written += WARM_UP
                self._read(results, processes, deadline)
            yield rows, results, processes
        results.close()

    def _rate(self, count: int, rows: Rows, results: Results, processes: Workers) -> float:
        began = time.monotonic()
        rows.write(count)
        while len(results.taken) < count:
            self._read(results, processes, began + PATIENCE_S)
        return count / (time.monotonic() - began)

    def _trickle(
        self,
        count: int,
        rows: Rows,
        results: Results,
        processes: Workers,
        *,
        first: int = 0,
        kill_at: int | None = None,
    ) -> None:
        """Ten rows a second, each by itself; the first worker is killed at one of them."""
        began = time.monotonic()
        written = 0
        while len(results.taken) < count:
            if written < count and time.monotonic() >= began + written / 10:
                rows.write(1, first + written)
                if written == kill_at:
                    processes.kill_first()
                written += 1
            self._read(results, processes, began + PATIENCE_S, 0.02)

    def _read(self, results: Results, processes: Workers, deadline: float, seconds: float = 0.1) -> None:
        processes.check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {PATIENCE_S:g} s not all rows are done")
        results.read(seconds)


def main() -> int:
    """Measures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queues", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, one worker, works in turns: for CI")
    options = parser.parse_args()
    need(JAVA)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl+C does: what was started is ended
    scale = QUICK if options.quick else FULL
    console = Console(width=None if Console().is_terminal else 120)
    with tempfile.TemporaryDirectory() as kept:
        peer = peers.kohort(Path(kept))
        peer.server.settings |= {"group.share.record.lock.duration.ms": str(LOCK_S * 1000)}
        peer.start()
        try:
            benchmark = Benchmark(peer.bootstrap, Path(kept), scale)
            table = Table(
                "", "workers", "rows/s", f"rows/s, {WAIT_MS} ms each", "latency, median", "95 %", title="Work queues"
            )
            for contender in CONTENDERS:
                for workers in (each for each in contender.workers if each <= scale.workers):
                    console.print(f"{contender.title}, {workers} workers …")
                    table.add_row(*_cells(benchmark.measured(contender, workers)))
            recovered = [(each, *benchmark.recovery_s(each)) for each in CONTENDERS if max(each.workers) > 1]
        finally:
            peer.stop()
    console.print(table)
    for contender, seconds, again in recovered:
        console.print(
            f"{contender.title}, one of two killed: a row takes {seconds:.2f} s at most, {again} are done twice"
        )
    return 0


def _cells(found: Measured) -> list[str]:
    latencies = ["" if each is None else f"{each:,.0f} ms" for each in (found.median_ms, found.p95_ms)]
    rates = [f"{found.rates[work]:,.0f}" if work in found.rates else "–" for work in WORKS]
    return [found.contender.title, str(found.workers), *rates, *latencies]


if __name__ == "__main__":
    sys.exit(main())
