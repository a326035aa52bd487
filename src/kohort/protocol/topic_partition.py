"""A partition of a topic, by the topic's name or by its id."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

__all__ = ["TopicIdPartition", "TopicPartition"]


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicIdPartition(NamedTuple):
    """A partition of a topic that is known by its id: what groups with member epochs assign."""

    topic_id: UUID
    partition: int

    def __str__(self) -> str:
        return f"{self.topic_id}-{self.partition}"
