"""A cluster for tests of conversion: topics `a` and `b`."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kohort.protocol.topic_partition import TopicIdPartition

TOPIC_IDS = {"a": UUID(int=1), "b": UUID(int=2)}


class Topics:
    """The topics of a cluster, with their partitions."""

    def __init__(self, **partitions: int) -> None:
        self.counts = partitions or {"a": 6, "b": 2}

    def partitions(self, topic: str) -> int | None:
        return self.counts.get(topic)

    def topic_id(self, topic: str) -> UUID | None:
        return TOPIC_IDS[topic] if topic in self.counts else None

    def name_of(self, topic_id: UUID) -> str | None:
        return next((name for name in self.counts if TOPIC_IDS[name] == topic_id), None)

    def matching(self, pattern: str) -> Sequence[str]:
        return [name for name in sorted(self.counts) if name == pattern]


def at(topic: str, *partitions: int) -> frozenset[TopicIdPartition]:
    return frozenset(TopicIdPartition(TOPIC_IDS[topic], partition) for partition in partitions)
