"""From a compiled program to what an instance runs of it, without Spark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

from kohort.spark.jobs.outputs import GroupOutput, WindowEnd
from kohort.spark.program.compiled import (
    Aggregate,
    CompiledSubtopology,
    PartialsInput,
    Program,
    RowsInput,
    SidesInput,
    SourceSpec,
    ToFunction,
    ToPartials,
    ToRows,
    ToTopic,
)
from kohort.spark.program.emission import AtMostEvery
from kohort.spark.program.error_policies import DeadLetter, ErrorPolicy, Fail
from kohort.spark.program.format_digests import store_formats, table_format
from kohort.spark.program.processor_specs import StateSpec
from kohort.spark.program.windows import WindowSpec
from kohort.spark.runtime.application_plan import ApplicationPlan, GlobalTable
from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.subtopology_plan import (
    CallOutput,
    StoreOutput,
    SubtopologyPlan,
    TopicOutput,
    Unreadable,
    WaitingStore,
)
from kohort.spark.runtime.window_closing import Windows


def application_plan_of(program: Program) -> ApplicationPlan:
    # What several branches make has to meet in the topic: rows of a key have one merger in an epoch.
    branches = [branch for each in program.subtopologies for branch in each.branches]
    made = Counter(branch.terminal.topic for branch in branches if isinstance(branch.terminal, ToPartials))
    read = {each.input.topic: each.id for each in program.subtopologies if isinstance(each.input, PartialsInput)}
    mergers = {topic: merger for topic, merger in read.items() if made[topic] == 1}
    return ApplicationPlan(
        application_id=program.application_id,
        topology=program.topology,
        fingerprint=program.fingerprint,
        subtopologies={each.id: subtopology_plan_of(each, mergers) for each in program.subtopologies},
        globals=tuple(
            GlobalTable(table.name, table.source.topic, unreadable_of(table.source), table_format(table))
            for table in program.globals
        ),
    )


def unreadable_of(source: SourceSpec) -> Unreadable:
    """What becomes of a source's records that can't be read."""
    return _by_policy(source.on_error)


def _by_policy(policy: ErrorPolicy) -> Unreadable:
    letters = policy.topic if isinstance(policy, DeadLetter) else None
    return Unreadable(stop=isinstance(policy, Fail), dead_letters=letters)


def _store_output(aggregate: Aggregate) -> StoreOutput:
    """What becomes of an aggregate's rows."""
    spec, outputs, waiting = aggregate.spec, aggregate.outputs, None
    if aggregate.waiting is not None:
        assert isinstance(spec.emit, AtMostEvery)
        waiting = WaitingStore(aggregate.waiting.name, aggregate.waiting.changelog, spec.emit.ms)
    window = spec.window
    end = closing = None
    if isinstance(window, WindowSpec):
        end = None if window.end is None else WindowEnd(window.end, window.end_ms)
        closing = Windows(window.size_ms, window.grace_ms, window.retention_ms)
    times = () if window is None else ("window", window.end)
    groups = json.dumps(
        {"type": "struct", "fields": [each.jsonValue() for each in spec.shown_columns if each.name not in times]}
    )
    plain = [each for each in outputs if each.format == "json" and each.key is None]
    return StoreOutput(
        spec.name,
        spec.changelog,
        closing,
        tuple(each.topic for each in plain),
        spec.emit == "close",
        tuple(
            GroupOutput(
                each.topic, each.format, each.key, each.columns, groups, each.avro_schema, window is not None, end,
                each.plain_decimals, each.registry, each.delimiter,
            )
            for each in outputs
            if each not in plain
        ),
        end,
        aggregate.stream,
        waiting,
        aggregate.deletes,
    )  # fmt: skip


def _buckets(state: StateSpec) -> Windows | None:
    """Buckets of time that the driver forgets are windows of which nothing is written when they close."""
    return Windows(state.bucket_ms, 0, state.retention_ms) if state.retention_ms else None


def subtopology_plan_of(compiled: CompiledSubtopology, mergers: Mapping[str, str] | None = None) -> SubtopologyPlan:
    """What a subtopology reads and writes. `mergers`: those that merge partials, by the topics that they read."""
    branches: dict[int, TopicOutput | StoreOutput | CallOutput] = {}
    called: list[object] = []  # functions, of which not all have a hash
    for index, branch in enumerate(compiled.branches):
        match branch.terminal:
            case ToFunction(function=function):
                branches[index] = CallOutput(called.count(function))
                called.append(function)
            case ToTopic(topic=topic, on_error=policy):
                branches[index] = TopicOutput(topic, unknown=None if policy is None else _by_policy(policy))
            case ToRows(topic=topic):
                branches[index] = TopicOutput(topic, repartition=True)
            case ToPartials(topic=topic):
                branches[index] = TopicOutput(
                    topic, repartition=True, routed=True, merged_by=(mergers or {}).get(topic)
                )
            case Aggregate():
                branches[index] = _store_output(branch.terminal)
    sources = [table.source for table in compiled.tables]
    sources.extend(each for source in compiled.read for each in source.each())
    streams = () if compiled.input is None else compiled.input.topics
    return SubtopologyPlan(
        id=compiled.id,
        inputs=SubtopologyInputs(
            streams[0] if streams else None,
            {table.name: table.source.topic for table in compiled.tables},
            streams[1:],
            together=isinstance(compiled.input, SidesInput),
            repartitioned=isinstance(compiled.input, (RowsInput, PartialsInput)),
        ),
        branches=branches,
        tables={table.name: StoreOutput(table.name, table.changelog or "") for table in compiled.tables},
        processors={
            state.store: StoreOutput(state.store, state.changelog, _buckets(state))
            for step in compiled.processors
            for state in step.states
        },
        unreadable={source.topic: unreadable_of(source) for source in sources},
        latest=frozenset(source.topic for source in sources if source.offset_reset == "latest"),
        placed=frozenset(topic for source in compiled.partition_checked for topic in source.topics),
        formats=store_formats(compiled),
        clocks=tuple(state.store for step in compiled.processors for state in step.states if state.clock),
    )
