"""Partitions of topics: records, the transactions that they belong to, and what readers may see of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from kohort.client.types import TopicPartition


class Record(NamedTuple):
    """A record.

    Attributes:
        key: its key.
        value: what it says: how many, a total, or a row of a table; None: a row is taken out.
        at: its event time, in ms.
        source: the partition and the offset of the record that it was made of; None of inputs, and of totals.
    """

    key: str
    value: int | None
    at: int = 0
    source: tuple[TopicPartition, int] | None = None


@dataclass(eq=False)
class Outcome:
    """Whether a transaction counts; None: that isn't decided."""

    committed: bool | None = None


@dataclass(slots=True)
class Entry:
    """A record in a partition, or the marker that ends a transaction there.

    Attributes:
        record: None for a marker.
        outcome: of its transaction, if it is in one.
    """

    record: Record | None
    outcome: Outcome | None = None


class Partition:
    """What lies in a partition, by offset."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._open: dict[Outcome, int] = {}

    @property
    def end(self) -> int:
        """The high watermark."""
        return len(self.entries)

    @property
    def stable(self) -> int:
        """The last stable offset: before it everything has a marker."""
        return min(self._open.values(), default=len(self.entries))

    def append(self, record: Record, outcome: Outcome | None = None) -> int:
        """Write a record; its offset."""
        if outcome is not None:
            self._open.setdefault(outcome, len(self.entries))
        self.entries.append(Entry(record, outcome))
        return len(self.entries) - 1

    def mark(self, outcome: Outcome) -> None:
        """Write the marker that ends a transaction."""
        self._open.pop(outcome, None)
        self.entries.append(Entry(None, outcome))

    def counting(self, start: int, end: int) -> list[tuple[int, Record]]:
        """What counts of offsets `start` to before `end`, as decided now: readers see it, or will when it is marked."""
        return [
            (offset, entry.record)
            for offset, entry in enumerate(self.entries[start:end], start)
            if entry.record is not None and (entry.outcome is None or entry.outcome.committed)
        ]


class Logs(defaultdict[TopicPartition, Partition]):
    """All partitions; those that nobody has written to are empty."""

    def __init__(self) -> None:
        super().__init__(Partition)
