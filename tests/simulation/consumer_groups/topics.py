"""The topics of a simulated cluster: they come and grow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from uuid import UUID


class Topics:
    """A cluster whose topics the scenario makes; see `kohort.coordinator.modern.cluster.Cluster`."""

    def __init__(self, topics: dict[str, int]) -> None:
        self.counts: dict[str, int] = {}
        self.ids: dict[str, UUID] = {}
        self.names: dict[UUID, str] = {}
        for name, count in topics.items():
            self.set(name, count)

    def set(self, name: str, count: int) -> None:
        """Make a topic, or let it grow."""
        self.counts[name] = count
        topic_id = self.ids.setdefault(name, UUID(int=len(self.ids) + 1))
        self.names[topic_id] = name

    def partitions(self, topic: str) -> int | None:
        return self.counts.get(topic)

    def topic_id(self, topic: str) -> UUID | None:
        return self.ids.get(topic)

    def name_of(self, topic_id: UUID) -> str | None:
        return self.names.get(topic_id)

    def matching(self, pattern: str) -> Sequence[str]:
        return sorted(name for name in self.counts if re.fullmatch(pattern, name))
