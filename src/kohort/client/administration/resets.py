"""Plans resets of a group's offsets. Pure: looked-up offsets are arguments.

The targets are those of Kafka's own tool, and so are the limits: offsets stay within the partition, and a time after
the last record means the end.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from kohort.client.errors import ClientError
from kohort.client.types import TopicPartition


class Where(enum.Enum):
    """The kinds of targets."""

    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    OFFSET = "offset"
    SHIFT = "shift"
    TIME = "time"
    OFFSETS = "offsets"


class ResetError(ClientError, ValueError):
    """A reset that can't be planned: names the partition and why."""


@dataclass(frozen=True, slots=True)
class ResetTo:
    """A target, made by one of the methods; `EARLIEST`, `LATEST` and `CURRENT` have no value.

    Attributes:
        where: its kind.
        value: an offset, by how many records to shift, or ms since 1970.
        offsets: offsets by partition.
    """

    where: Where
    value: int = 0
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)

    @classmethod
    def earliest(cls) -> Self:
        """The first record."""
        return cls(Where.EARLIEST)

    @classmethod
    def latest(cls) -> Self:
        """The end: only records from now on are read."""
        return cls(Where.LATEST)

    @classmethod
    def current(cls) -> Self:
        """The committed offset, or the end where nothing is committed."""
        return cls(Where.CURRENT)

    @classmethod
    def offset(cls, offset: int) -> Self:
        """The same offset in every partition."""
        return cls(Where.OFFSET, offset)

    @classmethod
    def shift(cls, records: int) -> Self:
        """So many records after the committed offset, or before it if negative."""
        return cls(Where.SHIFT, records)

    @classmethod
    def time(cls, timestamp: int) -> Self:
        """The first record of that time or later, in ms since 1970."""
        return cls(Where.TIME, timestamp)

    @classmethod
    def to_offsets(cls, offsets: Mapping[TopicPartition, int]) -> Self:
        """An offset of its own for each partition; other partitions stay as they are."""
        return cls(Where.OFFSETS, offsets=dict(offsets))


class PlannedReset(NamedTuple):
    """A partition's reset.

    Attributes:
        before: the committed offset; None for none.
        after: the offset after the reset.
        note: why that differs from the target; "" if it doesn't.
        skipped: records there are between the two, which the group won't read; negative for those that it reads again.
            They are counted by offsets, of which compaction and transactions leave some without a record.
    """

    before: int | None
    after: int
    note: str = ""
    skipped: int = 0


def plan(
    to: ResetTo,
    committed: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, tuple[int, int]],
    found: Mapping[TopicPartition, int] | None = None,
) -> dict[TopicPartition, PlannedReset]:
    """Returns the reset of each partition of `ends`.

    Args:
        to: the target.
        committed: the committed offsets.
        ends: the first offset and the one after the last of each partition to reset.
        found: for a time, the offset of that time; -1 or missing if no record is that late.

    Raises:
        ResetError: a shift where nothing is committed.
    """
    return {
        partition: _counted(
            _planned(to, partition, committed.get(partition), bounds, (found or {}).get(partition, -1)), bounds
        )
        for partition, bounds in sorted(ends.items())
    }


def _planned(
    to: ResetTo, partition: TopicPartition, before: int | None, ends: tuple[int, int], found: int
) -> PlannedReset:
    first, last = ends
    match to.where:
        case Where.EARLIEST:
            return PlannedReset(before, first)
        case Where.LATEST:
            return PlannedReset(before, last)
        case Where.TIME:
            if found < 0:
                return PlannedReset(before, last, "no record is as late: the end")
            return PlannedReset(before, found)
        case Where.CURRENT:
            if before is None:
                return PlannedReset(before, last, "nothing is committed: the end")
            return _within(before, before, first, last)
        case Where.SHIFT:
            if before is None:
                raise ResetError(f"{partition}: nothing is committed that could be shifted")
            return _within(before, before + to.value, first, last)
        case Where.OFFSET:
            return _within(before, to.value, first, last)
        case Where.OFFSETS:
            return _within(before, to.offsets[partition], first, last)


def skipped_and_again(resets: Iterable[PlannedReset]) -> tuple[int, int]:
    """How many records resets skip in all, and how many they have read again."""
    moved = [each.skipped for each in resets]
    return sum(each for each in moved if each > 0), -sum(each for each in moved if each < 0)


def _counted(reset: PlannedReset, ends: tuple[int, int]) -> PlannedReset:
    if reset.before is None:
        return reset
    first, last = ends
    return reset._replace(skipped=reset.after - min(max(reset.before, first), last))


def _within(before: int | None, wanted: int, first: int, last: int) -> PlannedReset:
    if wanted < first:
        return PlannedReset(before, first, f"{wanted} is before the first offset")
    if wanted > last:
        return PlannedReset(before, last, f"{wanted} is after the end")
    return PlannedReset(before, wanted)
