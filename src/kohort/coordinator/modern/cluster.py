"""The topics of the cluster, as coordinators of groups see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID


class Cluster(Protocol):
    """The topics of the cluster."""

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has; None if there is no such topic."""
        ...

    def topic_id(self, topic: str) -> UUID | None:
        """A topic's id; None if there is no such topic."""
        ...

    def name_of(self, topic_id: UUID) -> str | None:
        """The name of the topic with an id; None if there is no such topic."""
        ...

    def matching(self, pattern: str) -> Sequence[str]:
        """Names of the topics that a regular expression matches as a whole, sorted; none if it doesn't compile."""
        ...


class NoTopics:
    """A cluster without topics."""

    def partitions(self, topic: str) -> int | None:
        del topic
        return None

    def topic_id(self, topic: str) -> UUID | None:
        del topic
        return None

    def name_of(self, topic_id: UUID) -> str | None:
        del topic_id
        return None

    def matching(self, pattern: str) -> Sequence[str]:
        del pattern
        return ()
