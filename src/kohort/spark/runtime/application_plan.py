"""What an instance runs: a compiled program without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kohort.client.streams.topology import Topology
from kohort.client.types import TopicPartition
from kohort.spark.program.committed_metadata import Fingerprint
from kohort.spark.runtime.subtopology_plan import SubtopologyPlan, Unreadable, subtopology_plan_of
from kohort.streams.tasks import TaskId

if TYPE_CHECKING:
    from kohort.spark.program.compiled import Program


@dataclass(frozen=True)
class GlobalTable:
    """A table that every instance has all of: its name, its topic, and what becomes of unreadable records."""

    name: str
    topic: str
    unreadable: Unreadable


@dataclass(frozen=True)
class ApplicationPlan:
    """An application.

    Attributes:
        application_id: the group's id.
        topology: as the group is told.
        fingerprint: of the program; stores and offsets of another one can't be used.
        parts: what each subtopology's tasks do, by its id.
        globals: global tables.
    """

    application_id: str
    topology: Topology
    fingerprint: Fingerprint
    parts: Mapping[str, SubtopologyPlan]
    globals: tuple[GlobalTable, ...] = ()

    def inputs(self, task: TaskId) -> tuple[TopicPartition, ...]:
        """What a task reads."""
        return self.topology.inputs(task)

    def changelogs(self, task: TaskId) -> dict[str, TopicPartition]:
        """The changelog partition of each of a task's stores."""
        stores = self.parts[task.subtopology].stores
        return {name: TopicPartition(topic, task.partition) for name, topic in stores.items()}

    @property
    def repartition_topics(self) -> frozenset[str]:
        """Topics that the application writes and reads itself: what was read can go."""
        parts = self.topology.subtopologies.values()
        return frozenset(topic.name for part in parts for topic in part.repartition_sources)


def application_plan_of(program: Program) -> ApplicationPlan:
    """What a compiled program is, without Spark."""
    from kohort.spark.program.error_policies import DeadLetter, Fail

    tables = []
    for table in program.globals:
        policy = table.source.on_error
        letters = policy.topic if isinstance(policy, DeadLetter) else None
        tables.append(
            GlobalTable(table.name, table.source.topic, Unreadable(stop=isinstance(policy, Fail), dead_letters=letters))
        )
    return ApplicationPlan(
        application_id=program.application_id,
        topology=program.topology,
        fingerprint=program.fingerprint,
        parts={part.id: subtopology_plan_of(part) for part in program.subtopologies},
        globals=tuple(tables),
    )
