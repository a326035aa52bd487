"""What the instances run: three kinds of applications that count, and what each makes of records."""

from __future__ import annotations

from dataclasses import dataclass

from kohort.client.types import TopicPartition
from kohort.spark.program.committed_metadata import Fingerprint
from kohort.spark.runtime.application_plan import ApplicationPlan
from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.subtopology_plan import StoreOutput, SubtopologyPlan, TopicOutput
from kohort.streams.tasks import TaskId
from kohort.streams.topology import InternalTopic, Subtopology, Topology

GROUP = "app"
PROGRAM = Fingerprint("program-1")
COUNTS, USERS = "counts", "users"  # stores
REPARTITION = "app-repartition"


@dataclass(frozen=True)
class Application:
    """An application.

    Attributes:
        plan: as the runtime knows it.
        sources: topics that others write to.
        counting: subtopologies that count the records of their stream; others pass them on to be counted.
        partitions: of each source and repartition topic.
    """

    plan: ApplicationPlan
    sources: tuple[str, ...]
    counting: frozenset[str]
    partitions: int

    @property
    def tasks(self) -> list[TaskId]:
        return [TaskId(name, number) for name in self.plan.subtopologies for number in range(self.partitions)]

    def changelog(self, task: TaskId, store: str) -> TopicPartition:
        return self.plan.changelogs(task)[store]


def application(kind: str, partitions: int) -> Application:
    """One of `KINDS`.

    count: in -> counts.
    repartition: in -> how many of each key, by key -> counts; at once, where the task that counts them runs beside.
    table: in -> counts, beside a table of users that is read before it.
    """
    parts: dict[str, tuple[Subtopology, SubtopologyPlan]] = {}
    counts = StoreOutput(COUNTS, "app-counts-changelog")
    changelog = InternalTopic(name=counts.changelog)
    if kind == "table":
        users = StoreOutput(USERS, "app-users-changelog")
        parts["0"] = (
            Subtopology(
                source_topics=["in", "users"],
                changelogs=[changelog, InternalTopic(name=users.changelog)],
                copartition_groups=[["in", "users"]],
            ),
            SubtopologyPlan("0", SubtopologyInputs("in", {USERS: "users"}), {0: counts}, {USERS: users}),
        )
    elif kind == "repartition":
        repartition = InternalTopic(name=REPARTITION, partitions=partitions)
        parts["0"] = (
            Subtopology(source_topics=["in"], repartition_sinks=[REPARTITION]),
            SubtopologyPlan(
                "0", SubtopologyInputs("in", {}), {0: TopicOutput(REPARTITION, routed=True, merged_by="1")}
            ),
        )
        parts["1"] = (
            Subtopology(repartition_sources=[repartition], changelogs=[changelog]),
            SubtopologyPlan("1", SubtopologyInputs(REPARTITION, {}), {0: counts}),
        )
    else:
        parts["0"] = (
            Subtopology(source_topics=["in"], changelogs=[changelog]),
            SubtopologyPlan("0", SubtopologyInputs("in", {}), {0: counts}),
        )
    plan = ApplicationPlan(
        GROUP,
        Topology({name: part for name, (part, _) in parts.items()}),
        PROGRAM,
        {name: plan for name, (_, plan) in parts.items()},
    )
    sources = ("in", "users") if kind == "table" else ("in",)
    counting = frozenset(["1" if kind == "repartition" else "0"])
    return Application(plan, sources, counting, partitions)


KINDS = ("count", "repartition", "table")
