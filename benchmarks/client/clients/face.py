"""What every library is asked to do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

BATCH = 10_000
"""Records that are handed over at once, where a library takes many."""

TIMEOUT = 120.0


class Clock:
    """Wall and processor time between `start` and `stop`."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.cpu = 0.0

    def start(self) -> None:
        """The client is connected; the work begins."""
        self.seconds, self.cpu = -time.perf_counter(), -time.process_time()

    def stop(self) -> None:
        """The work is done; closing doesn't count."""
        self.seconds += time.perf_counter()
        self.cpu += time.process_time()


class Client(Protocol):
    """A library. All have acks=all, linger 5 ms, no compression, no keys; all else is their own default."""

    def load(self) -> None:
        """Wait for what is loaded in the background."""

    def produce(self, bootstrap: str, topic: str, values: Sequence[bytes], clock: Clock) -> None:
        """Send record by record, until all are acknowledged."""

    def produce_batch(self, bootstrap: str, topic: str, values: Sequence[bytes], clock: Clock) -> None:
        """The same, many records at a time."""

    def consume(self, bootstrap: str, topic: str, number: int, clock: Clock) -> None:
        """Read so many records, one by one, and look at each value; without a group, from the beginning."""

    def consume_batch(self, bootstrap: str, topic: str, number: int, clock: Clock) -> None:
        """The same, many records at a time, without a look at each."""

    def first_record(self, bootstrap: str, topic: str, group: str, clock: Clock) -> None:
        """From making a member of a new group to its first record."""

    def idle(self, bootstrap: str, topic: str, group: str, members: int, seconds: float, clock: Clock) -> None:
        """So many members of a group, with a partition each and nothing to read; `clock` runs once all are at rest."""
