"""What streams groups need of the broker: its topics, their settings, and a placer of tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kohort.coordinator import placement
from kohort.coordinator.modern.cluster import Cluster, NoTopics
from kohort.coordinator.placement.model import Group, Placement
from kohort.coordinator.streams.settings import StreamsSettings


@dataclass(frozen=True, slots=True)
class PlacementJob:
    """Tasks to be placed."""

    group_id: str
    group_epoch: int
    assignor: str
    group: Group

    def run(self) -> Placement:
        """Runs the assignor. May take a while, and may be called in another thread."""
        return placement.place(self.assignor, self.group)

    def run_without_solver(self) -> Placement | None:
        """Returns what `run` does, quickly; None where that takes a solver."""
        return placement.place_without_solver(self.assignor, self.group)


Placer = Callable[[PlacementJob], Placement | None]
"""Returns the placement at once; or None, and `StreamsGroups.placed` gets it later."""


def _defaults(group_id: str) -> StreamsSettings:
    del group_id
    return StreamsSettings()


@dataclass(frozen=True, slots=True)
class StreamsEnvironment:
    """The environment; by default without topics, with Kafka's default settings, and with placement at once.

    Attributes:
        settings_of: returns the settings of a group, by id. Called for each heartbeat, so it should be quick.
    """

    settings_of: Callable[[str], StreamsSettings] = _defaults
    cluster: Cluster = field(default_factory=NoTopics)
    placer: Placer = PlacementJob.run
