"""How quickly topics are written, and how quickly groups read them, from the offsets of the last looks."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from kohort.client.administration.group_offsets import PartitionLag
from kohort.client.types import TopicPartition

MOST_GROUPS: Final = 200
"""Groups whose offsets are kept: those that were looked at last."""

MOST_TOPICS: Final = 100
"""Of a group, the first ones by name."""

SAMPLES: Final = 8
"""Looks that a rate is worked out from."""


class Rate(NamedTuple):
    """Of a topic, in offsets a second, which are records, but for the markers of transactions.

    Attributes:
        written: by which its ends grow; None while that isn't known.
        read: by which the group's committed offsets grow; None while that isn't known.
    """

    written: float | None
    read: float | None


class _Sum(NamedTuple):
    """Offsets of a topic's partitions together, and of how many: sums of other partitions can't be compared."""

    ends: int = 0
    with_end: int = 0
    committed: int = 0
    with_committed: int = 0

    def plus(self, lag: PartitionLag) -> _Sum:
        end, committed = lag.end, lag.committed
        return _Sum(
            self.ends + (end or 0),
            self.with_end + (end is not None),
            self.committed + (committed or 0),
            self.with_committed + (committed is not None),
        )


class Flow:
    """The offsets of a group in its last looks."""

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: deque[tuple[float, dict[str, _Sum]]] = deque(maxlen=SAMPLES)

    def add(self, at: float, lag: Mapping[TopicPartition, PartitionLag]) -> None:
        """Takes a look; one that isn't newer than the last is passed over.

        Args:
            at: in seconds, by a clock that never goes back.
            lag: by partition.
        """
        if self._samples and at <= self._samples[-1][0]:
            return
        topics = sorted({each.topic for each in lag})[:MOST_TOPICS]
        sums = dict.fromkeys(topics, _Sum())
        for partition, each in lag.items():
            if partition.topic in sums:
                sums[partition.topic] = sums[partition.topic].plus(each)
        self._samples.append((at, sums))

    def rates(self) -> dict[str, Rate]:
        """By topic."""
        if not self._samples:
            return {}
        at, last = self._samples[-1]
        found = {}
        for topic, now in last.items():
            written = read = None
            for before, sums in reversed(self._samples):
                then = sums.get(topic, _Sum())
                if before == at:
                    continue
                if now.with_end and then.with_end == now.with_end:
                    written = max(0.0, (now.ends - then.ends) / (at - before))
                if now.with_committed and then.with_committed == now.with_committed:
                    read = max(0.0, (now.committed - then.committed) / (at - before))
            found[topic] = Rate(written, read)
        return found
