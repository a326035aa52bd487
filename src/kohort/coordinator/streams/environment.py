"""What streams groups want of the broker around them: its topics, their configuration, and somebody to solve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from kohort.coordinator import placement
from kohort.coordinator.placement.model import Group, Placement
from kohort.coordinator.streams.settings import StreamsSettings

__all__ = ["Cluster", "NoTopics", "PlacementJob", "Placer", "StreamsEnvironment"]


class Cluster(Protocol):
    """The topics that there are."""

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has; None if there is no such topic."""
        ...

    def topic_id(self, topic: str) -> UUID | None:
        """A topic's id; None if there is no such topic."""
        ...

    def matching(self, pattern: str) -> Sequence[str]:
        """Names of the topics that a regular expression matches whole, sorted; none for one that doesn't compile."""
        ...


class NoTopics:
    """A cluster without topics."""

    def partitions(self, topic: str) -> int | None:
        """There is no such topic."""
        del topic
        return None

    def topic_id(self, topic: str) -> UUID | None:
        """There is no such topic."""
        del topic
        return None

    def matching(self, pattern: str) -> Sequence[str]:
        """None match."""
        del pattern
        return ()


@dataclass(frozen=True, slots=True)
class PlacementJob:
    """Tasks to be placed.

    Attributes:
        group_id, group_epoch: for which group, and for which epoch of it.
        assignor: name of the assignor.
        group: what the assignor is told.
    """

    group_id: str
    group_epoch: int
    assignor: str
    group: Group

    def run(self) -> Placement:
        """Place them. May take a while, and may be called in another thread."""
        return placement.ASSIGNORS[self.assignor](self.group)


Placer = Callable[[PlacementJob], Placement | None]
"""Gives the placement at once; or None, and later `StreamsGroups.placed` is told what came of it."""


def _defaults(group_id: str) -> StreamsSettings:
    del group_id
    return StreamsSettings()


@dataclass(frozen=True, slots=True)
class StreamsEnvironment:
    """All of it; by default there are no topics, every group has Kafka's default settings, and placing is done at once.

    Attributes:
        settings_of: the settings of a group, by id. Asked with each heartbeat, so the answer should be at hand.
        cluster: the topics.
        placer: who places tasks.
    """

    settings_of: Callable[[str], StreamsSettings] = _defaults
    cluster: Cluster = field(default_factory=NoTopics)
    placer: Placer = PlacementJob.run
