"""The topics of a cluster, as a leader sees them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kohort.streams.patterns import matching


class Topics:
    """Partitions by topic, and ids of those that were created again."""

    def __init__(self, **partitions: int) -> None:
        self.counts: dict[str, int] = partitions
        self.ids: dict[str, UUID] = {}

    def partitions(self, topic: str) -> int | None:
        return self.counts.get(topic)

    def topic_id(self, topic: str) -> UUID | None:
        return self.ids.get(topic, UUID(int=1)) if topic in self.counts else None

    def matching(self, pattern: str) -> Sequence[str]:
        try:
            return matching(pattern, self.counts)
        except ValueError:
            return []
