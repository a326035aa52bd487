"""From a compiled program to what an instance runs of it, without Spark."""

from __future__ import annotations

from collections.abc import Mapping

from kohort.spark.program.compiled import (
    Aggregate,
    CompiledSubtopology,
    PartialsInput,
    Program,
    SourceSpec,
    ToFunction,
    ToPartials,
    TopicInput,
    ToRows,
    ToTopic,
)
from kohort.spark.program.error_policies import DeadLetter, Fail
from kohort.spark.runtime.application_plan import ApplicationPlan, GlobalTable
from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.subtopology_plan import CallOutput, StoreOutput, SubtopologyPlan, TopicOutput, Unreadable
from kohort.spark.runtime.window_closing import Windows


def application_plan_of(program: Program) -> ApplicationPlan:
    mergers = {each.input.topic: each.id for each in program.subtopologies if isinstance(each.input, PartialsInput)}
    return ApplicationPlan(
        application_id=program.application_id,
        topology=program.topology,
        fingerprint=program.fingerprint,
        subtopologies={each.id: subtopology_plan_of(each, mergers) for each in program.subtopologies},
        globals=tuple(
            GlobalTable(table.name, table.source.topic, unreadable_of(table.source)) for table in program.globals
        ),
    )


def unreadable_of(source: SourceSpec) -> Unreadable:
    """What becomes of a source's records that can't be read."""
    policy = source.on_error
    letters = policy.topic if isinstance(policy, DeadLetter) else None
    return Unreadable(stop=isinstance(policy, Fail), dead_letters=letters)


def subtopology_plan_of(compiled: CompiledSubtopology, mergers: Mapping[str, str] | None = None) -> SubtopologyPlan:
    """What a subtopology reads and writes. `mergers`: those that merge partials, by the topics that they read."""
    branches: dict[int, TopicOutput | StoreOutput | CallOutput] = {}
    for index, branch in enumerate(compiled.branches):
        match branch.terminal:
            case ToFunction():
                branches[index] = CallOutput()
            case ToTopic(topic=topic):
                branches[index] = TopicOutput(topic)
            case ToRows(topic=topic):
                branches[index] = TopicOutput(topic, repartition=True)
            case ToPartials(topic=topic):
                branches[index] = TopicOutput(
                    topic, repartition=True, routed=True, merged_by=(mergers or {}).get(topic)
                )
            case Aggregate(spec=spec, outputs=outputs):
                window = spec.window
                branches[index] = StoreOutput(
                    spec.name,
                    spec.changelog,
                    None if window is None else Windows(window.size_ms, window.grace_ms, window.retention_ms),
                    tuple(each.topic for each in outputs),
                    spec.emit == "close",
                )
    sources = [table.source for table in compiled.tables]
    if isinstance(compiled.input, TopicInput):
        sources.append(compiled.input.source)
    return SubtopologyPlan(
        id=compiled.id,
        inputs=SubtopologyInputs(
            None if compiled.input is None else compiled.input.topic,
            {table.name: table.source.topic for table in compiled.tables},
        ),
        branches=branches,
        tables={table.name: StoreOutput(table.name, table.changelog or "") for table in compiled.tables},
        unreadable={source.topic: unreadable_of(source) for source in sources},
        latest=frozenset(source.topic for source in sources if source.offset_reset == "latest"),
        placed=frozenset(source.topic for source in compiled.partition_checked),
    )
