"""Offsets by group, topic and partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple
from uuid import UUID

from kohort.protocol.schema import NO_UUID

NEVER_SET: Final = -1


class CommittedOffset(NamedTuple):
    """An offset that a group committed for a partition.

    Attributes:
        offset: next offset to read.
        leader_epoch: epoch of the leader that wrote the record before it; -1 if unknown.
        committed_at: in ms since 1970.
        expires_at: when it expires, in ms since 1970, if the commit said so; else -1.
        topic_id: the topic's id, all zero if the commit had none.
        order: its number among all commits of the log; of two commits the later counts.
    """

    offset: int
    leader_epoch: int
    metadata: str
    committed_at: int
    expires_at: int = NEVER_SET
    topic_id: UUID = NO_UUID
    order: int = 0


class OffsetTable:
    """Committed offsets by group, then topic, then partition."""

    __slots__ = ("_groups", "_size")

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        topics = self._groups.get(group_id)
        partitions = topics.get(topic) if topics is not None else None
        return partitions.get(partition) if partitions is not None else None

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        partitions = self._groups.setdefault(group_id, {}).setdefault(topic, {})
        self._size += partition not in partitions
        partitions[partition] = committed

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self._groups.get(group_id, {})
        partitions = topics.get(topic, {})
        if partitions.pop(partition, None) is None:
            return
        self._size -= 1
        if not partitions:
            del topics[topic]
        if not topics:
            del self._groups[group_id]

    def group_ids(self) -> list[str]:
        return list(self._groups)

    def topics(self, group_id: str) -> list[str]:
        return sorted(self._groups.get(group_id, ()))

    def partitions(self, group_id: str, topic: str) -> list[tuple[int, CommittedOffset]]:
        """A group's offsets in a topic, by partition in ascending order."""
        return sorted(self._groups.get(group_id, {}).get(topic, {}).items())

    def entries(self, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """A group's offsets with topic and partition, sorted."""
        for topic in self.topics(group_id):
            for partition, committed in self.partitions(group_id, topic):
                yield topic, partition, committed
