"""What an instance runs, as data, without Spark. `planning` makes it of a compiled program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kohort.client.types import TopicPartition
from kohort.spark.program.committed_metadata import Fingerprint
from kohort.spark.runtime.subtopology_plan import SubtopologyPlan, Unreadable
from kohort.streams.tasks import TaskId
from kohort.streams.topology import Topology


@dataclass(frozen=True)
class GlobalTable:
    """A table that every instance has all of: its name, its topic, and what becomes of unreadable records.

    Attributes:
        format: changes with what its store holds of a record; "" for any.
    """

    name: str
    topic: str
    unreadable: Unreadable
    format: str = ""


@dataclass(frozen=True)
class ApplicationPlan:
    """An application.

    Attributes:
        application_id: the group's id.
        topology: as the group is told.
        fingerprint: of the program; stores and offsets of another one can't be used.
        subtopologies: what each's tasks do, by its id.
    """

    application_id: str
    topology: Topology
    fingerprint: Fingerprint
    subtopologies: Mapping[str, SubtopologyPlan]
    globals: tuple[GlobalTable, ...] = ()

    def inputs(self, task: TaskId) -> tuple[TopicPartition, ...]:
        """What a task reads: its partition of each topic of its subtopology, though one may not have so many."""
        topics = self.subtopologies[task.subtopology].inputs.topics
        return tuple(TopicPartition(topic, task.partition) for topic in topics)

    def changelogs(self, task: TaskId) -> dict[str, TopicPartition]:
        """The changelog partition of each of a task's stores."""
        stores = self.subtopologies[task.subtopology].stores
        return {name: TopicPartition(topic, task.partition) for name, topic in stores.items()}

    @property
    def repartition_topics(self) -> frozenset[str]:
        """Topics that the application writes and reads itself: what was read can go."""
        subtopologies = self.topology.subtopologies.values()
        return frozenset(topic.name for each in subtopologies for topic in each.repartition_sources)
