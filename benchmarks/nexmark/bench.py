"""What is measured: each query over all events, which are there at the start."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.nexmark import batch, topics
from benchmarks.nexmark.events import CLOSING_MS, closing_ms
from benchmarks.nexmark.results import Gathered
from benchmarks.pipeline.cases import Case
from benchmarks.pipeline.contenders import environment
from benchmarks.pipeline.measures import PARTITIONS, Bench
from benchmarks.pipeline.watcher import Watcher

QUIET_S, QUIET_EVENTS = 8, 250_000
"""Results are compared once nothing has come for so many seconds at most: for one, and another for so many events.
Comparing earlier would take processor time from who isn't done yet."""


class Answers:
    """What a batch gives, by query; it runs in a process of its own, once for all.

    Args:
        directory: where the files go.
        names: of all queries that are asked.
    """

    def __init__(self, directory: Path, events: int, names: Sequence[str]) -> None:
        self._directory, self._events, self._names = directory, events, names

    def __getitem__(self, query: str) -> pa.Table:
        return pq.read_table(self._files / query)

    @cached_property
    def _files(self) -> Path:
        command = [sys.executable, "-m", "benchmarks.nexmark.programs.oracle", str(self._directory), str(self._events)]
        done = subprocess.run([*command, *self._names], capture_output=True, text=True, env=environment())
        if done.returncode:
            raise RuntimeError(f"the batch ended with code {done.returncode}:\n{done.stderr[-4000:]}")
        return self._directory


class QueryCase(Case[pa.Table]):
    """A query of Nexmark's."""

    things = "events"
    measures = ("throughput",)

    def __init__(self, query: str, answers: Answers) -> None:
        self.name = query
        self.title = batch.QUERIES[query].title
        self.closing = batch.QUERIES[query].closing
        self._answers = answers

    def fill(self, servers: str, topic: str, records: int) -> None:
        """Produce so many events, as fast as it goes, to topics with this prefix."""
        topics.create(servers, topic, PARTITIONS)
        topics.fill(servers, topic, records, closed=self.closing)

    def batch(self, records: int) -> tuple[pa.Table, int]:
        """What a batch makes of so many events, and how many results that is."""
        expected = self._answers[self.name]
        return expected, expected.num_rows

    def results(self, servers: str, topic: str, partitions: int, records: int) -> QueryResults:
        """Reads the results of so many events."""
        quiet = min(1 + records / QUIET_EVENTS, QUIET_S)
        query = batch.QUERIES[self.name]
        until = (query.begins, closing_ms(records) - CLOSING_MS // 2) if query.begins else None
        gathered = Gathered(self._answers[self.name], query.keys, query.clock, until)
        return QueryResults(servers, topic, partitions, gathered, quiet)


class QueryResults(Watcher[pa.Table]):
    """Reads the results of a query.

    Where later results replace earlier ones nobody can say which is the last: they are compared with the batch's when
    nothing has come for some seconds, and count if they are equal.

    Args:
        quiet: so many seconds.
    """

    def __init__(self, servers: str, topic: str, partitions: int, gathered: Gathered, quiet: float) -> None:
        super().__init__(servers, topic, partitions)
        self._gathered, self._quiet = gathered, quiet
        self._compared = True

    def poll(self, seconds: float) -> None:
        """Take what is there, waiting so long for it at most."""
        super().poll(seconds)
        if not self._compared and time.time() - self.arrived > self._quiet:
            self._compared = True
            if not self._gathered.differences():
                self.counted = self._gathered.expected.num_rows

    def take(self, values: Sequence[bytes]) -> None:
        """Take results, in the order in which they were read."""
        self._gathered.take(values)
        if self._gathered.keys:
            self._compared = False
        else:
            self.counted += len(values)

    def differences(self, expected: pa.Table) -> list[str]:
        """Where the results aren't what a batch makes of the same records."""
        return self._gathered.differences()


class NexmarkBench(Bench):
    """A broker with all events, which each query reads; once more with closing events, if a query wants them."""

    def filled(self, records: int) -> str:
        """The prefix of topics with so many events."""
        assert isinstance(self.case, QueryCase)
        prefix = f"nexmark-{records}{'-closed' * self.case.closing}"
        if prefix not in self._prefixes:
            self.say(f"producing {records:,} events")
            self.case.fill(self.broker.bootstrap_servers, prefix, records)
            self._prefixes.add(prefix)
        return prefix

    @cached_property
    def _prefixes(self) -> set[str]:
        return set()
