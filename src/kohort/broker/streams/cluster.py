"""The broker's topics as streams groups see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from kohort.broker.topics import Topic, Topics
from kohort.coordinator.streams.patterns import matching

__all__ = ["BrokerCluster"]

_PATTERNS: Final = 1000
"""Patterns whose topics are remembered."""


class BrokerCluster:
    """Answers from the broker's topics; it is `kohort.coordinator.streams.environment.Cluster`."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._matching: dict[str, tuple[str, ...]] = {}
        topics.on_created.append(self._changed)
        topics.on_deleted.append(self._changed)

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has; None if there is no such topic."""
        found = self._topics.get(topic)
        return None if found is None else len(found.partitions)

    def topic_id(self, topic: str) -> UUID | None:
        """A topic's id; None if there is no such topic."""
        found = self._topics.get(topic)
        return None if found is None else found.id

    def matching(self, pattern: str) -> Sequence[str]:
        """Names of the topics that a regular expression matches whole, sorted; none for one that doesn't compile.

        The broker's own topics aren't among them.
        """
        known = self._matching.get(pattern)
        if known is None:
            try:
                known = tuple(matching(pattern, (topic.name for topic in self._topics if not topic.internal)))
            except ValueError:
                known = ()
            if len(self._matching) >= _PATTERNS:
                self._matching.clear()
            self._matching[pattern] = known
        return known

    def _changed(self, topic: Topic) -> None:
        self._matching.clear()
