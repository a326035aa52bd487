"""The topics of a simulated cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from uuid import UUID


class Topics:
    """Topics by name; what streams groups see of a cluster."""

    def __init__(self) -> None:
        self._partitions: dict[str, int] = {}
        self._ids: dict[str, UUID] = {}
        self._made = 0

    def partitions(self, topic: str) -> int | None:
        return self._partitions.get(topic)

    def topic_id(self, topic: str) -> UUID | None:
        return self._ids.get(topic)

    def matching(self, pattern: str) -> Sequence[str]:
        compiled = re.compile(pattern)
        return sorted(topic for topic in self._partitions if compiled.fullmatch(topic))

    def create(self, topic: str, partitions: int) -> None:
        """Make a topic, or give it more partitions."""
        if topic not in self._ids:
            self._made += 1
            self._ids[topic] = UUID(int=self._made)
        self._partitions[topic] = max(partitions, self._partitions.get(topic, 0))

    def delete(self, topic: str) -> None:
        """Remove it, if it is there."""
        self._partitions.pop(topic, None)
        self._ids.pop(topic, None)
