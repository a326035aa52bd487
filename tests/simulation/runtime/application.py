"""What the instances run: kinds of applications that count, join, or have sessions or timers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kohort.client.types import TopicPartition
from kohort.spark.program.committed_metadata import Fingerprint
from kohort.spark.runtime.application_plan import ApplicationPlan
from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.subtopology_plan import StoreOutput, SubtopologyPlan, TopicOutput
from kohort.streams.tasks import TaskId
from kohort.streams.topology import InternalTopic, Subtopology, Topology
from tests.simulation.runtime.programs import PROGRAMS, Program

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
        program: what they do instead of counting.
        kind: one of `KINDS` or `PROGRAM_KINDS`.
    """

    plan: ApplicationPlan
    sources: tuple[str, ...]
    counting: frozenset[str]
    partitions: int
    program: Program | None = None
    kind: str = "count"

    @property
    def tasks(self) -> list[TaskId]:
        return [TaskId(name, number) for name in self.plan.subtopologies for number in range(self.partitions)]

    def changelog(self, task: TaskId, store: str) -> TopicPartition:
        return self.plan.changelogs(task)[store]


def application(kind: str, partitions: int) -> Application:
    """One of `KINDS` or `PROGRAM_KINDS`.

    count: in -> counts.
    repartition: in -> how many of each key, by key -> counts; at once, where the task that counts them runs beside.
    table: in -> counts, beside a table of users that is read before it.
    join: in, others -> repartition, by key -> pairs.
    sessions: in -> sessions.
    timers: in -> each record again, later.
    """
    if kind in PROGRAMS:
        return _with_program(kind, partitions)
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
    sources = ("in", "users") if kind == "table" else ("in",)
    counting = frozenset(["1" if kind == "repartition" else "0"])
    return Application(_plan(parts), sources, counting, partitions, kind=kind)


def _with_program(kind: str, partitions: int) -> Application:
    program, names = PROGRAMS[kind]
    stores = {name: StoreOutput(name, f"app-{name}-changelog") for name in names}
    changelogs = [InternalTopic(name=each.changelog) for each in stores.values()]
    parts: dict[str, tuple[Subtopology, SubtopologyPlan]] = {}
    if kind == "join":
        sources: tuple[str, ...] = ("in", "others")
        for number, topic in enumerate(sources):
            parts[str(number)] = (
                Subtopology(source_topics=[topic], repartition_sinks=[REPARTITION]),
                SubtopologyPlan(
                    str(number), SubtopologyInputs(topic, {}), {0: TopicOutput(REPARTITION, repartition=True)}
                ),
            )
        name, stream = "2", REPARTITION
        part = Subtopology(
            repartition_sources=[InternalTopic(name=REPARTITION, partitions=partitions)], changelogs=changelogs
        )
    else:
        sources, name, stream = ("in",), "0", "in"
        part = Subtopology(source_topics=["in"], changelogs=changelogs)
    clocks = names if kind == "timers" else ()
    inputs = SubtopologyInputs(stream, {})
    parts[name] = part, SubtopologyPlan(name, inputs, {0: TopicOutput("out")}, processors=stores, clocks=clocks)
    return Application(_plan(parts), sources, frozenset([name]), partitions, program, kind)


def _plan(parts: Mapping[str, tuple[Subtopology, SubtopologyPlan]]) -> ApplicationPlan:
    return ApplicationPlan(
        GROUP,
        Topology({name: part for name, (part, _) in parts.items()}),
        PROGRAM,
        {name: plan for name, (_, plan) in parts.items()},
    )


KINDS = ("count", "repartition", "table")
PROGRAM_KINDS = tuple(PROGRAMS)
