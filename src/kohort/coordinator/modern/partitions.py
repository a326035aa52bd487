"""Partitions as the items that consumer and share groups assign. There is only one role: a member has a partition."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias
from uuid import UUID

from kohort.protocol.topic_partition import TopicIdPartition


class Role(enum.Enum):
    ASSIGNED = "assigned"


ASSIGNED: Final = Role.ASSIGNED

Partitions: TypeAlias = Mapping[TopicIdPartition, Role]


class ListedPartitions(Protocol):
    """Partitions of a topic, in a message or record."""

    @property
    def topic_id(self) -> UUID: ...

    @property
    def partitions(self) -> Sequence[int]: ...


def partitions_of(topics: Iterable[ListedPartitions]) -> dict[TopicIdPartition, Role]:
    """The partitions that a message lists."""
    return {TopicIdPartition(topic.topic_id, each): ASSIGNED for topic in topics for each in topic.partitions}


def by_topic(partitions: Iterable[TopicIdPartition]) -> dict[UUID, tuple[int, ...]]:
    """The numbers of partitions by topic, all in order."""
    found: dict[UUID, list[int]] = {}
    for partition in sorted(partitions):
        found.setdefault(partition.topic_id, []).append(partition.partition)
    return {topic_id: tuple(numbers) for topic_id, numbers in found.items()}
