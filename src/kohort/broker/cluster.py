"""The broker's topics as groups see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from kohort.broker.topics import Topic, Topics
from kohort.streams.patterns import matching

_PATTERNS: Final = 1000
"""Patterns in the cache."""


class BrokerCluster:
    """`kohort.coordinator.modern.cluster.Cluster`, of the broker's topics."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._matching: dict[str, tuple[str, ...]] = {}
        topics.on_created.append(self._changed)
        topics.on_deleted.append(self._changed)

    def partitions(self, topic: str) -> int | None:
        found = self._topics.get(topic)
        return None if found is None else len(found.partitions)

    def topic_id(self, topic: str) -> UUID | None:
        found = self._topics.get(topic)
        return None if found is None else found.id

    def name_of(self, topic_id: UUID) -> str | None:
        found = self._topics.by_id(topic_id)
        return None if found is None else found.name

    def matching(self, pattern: str) -> Sequence[str]:
        """The sorted names that a regular expression fully matches; none if it doesn't compile. No internal topics."""
        names = self._matching.get(pattern)
        if names is None:
            try:
                names = tuple(matching(pattern, (topic.name for topic in self._topics if not topic.internal)))
            except ValueError:
                names = ()
            if len(self._matching) >= _PATTERNS:
                self._matching.clear()
            self._matching[pattern] = names
        return names

    def _changed(self, topic: Topic) -> None:
        self._matching.clear()
