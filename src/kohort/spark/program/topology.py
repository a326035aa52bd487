"""The topology of a program, as a member sends it to the group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kohort.spark.errors import ProgramError
from kohort.spark.program.compiled import (
    Aggregate,
    CompiledSubtopology,
    RowsInput,
    SidesInput,
    ToPartials,
    TopicInput,
    ToRows,
)
from kohort.spark.program.settings import AppSettings
from kohort.spark.program.windows import WindowSpec
from kohort.streams.topology import InternalTopic, Subtopology, Topology, TopologyError, check

# Records of internal topics have event times, and those may lie ahead of the broker's clock: a timetable's, say.
_EVENT_TIME: Final = {"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": str(2**63 - 1)}
_REPARTITION: Final = {
    "cleanup.policy": "delete",
    **_EVENT_TIME,
    "retention.ms": "-1",  # they are removed when they have been consumed, not before
    "segment.bytes": str(50 * 1024 * 1024),
}
_CHANGELOG: Final = {"cleanup.policy": "compact", **_EVENT_TIME}


def topology(subtopologies: Sequence[CompiledSubtopology], settings: AppSettings) -> Topology:
    """The topology that a member sends to its group.

    Raises:
        ProgramError: no group would take it.
    """
    try:
        found = Topology({each.id: _subtopology(each, settings) for each in subtopologies})
        check(found)
    except TopologyError as error:
        raise ProgramError(str(error)) from None
    return found


def _subtopology(subtopology: CompiledSubtopology, settings: AppSettings) -> Subtopology:
    replicas = max(settings.replication_factor, 0)  # 0: the brokers' default
    sources = [table.source.topic for table in subtopology.tables]
    repartition = []
    if isinstance(subtopology.input, (TopicInput, SidesInput)):
        sources.extend([] if subtopology.pattern else subtopology.input.topics)
    elif subtopology.input is not None:
        partitions = subtopology.input.partitions if isinstance(subtopology.input, RowsInput) else 0
        repartition.append(
            InternalTopic(
                name=subtopology.input.topic, partitions=partitions, replication_factor=replicas, configs=_REPARTITION
            )
        )
    windowed = [spec for spec in subtopology.aggregates if isinstance(spec.window, WindowSpec)]
    retention = {spec.changelog: spec.window.retention_ms for spec in windowed if spec.window}
    retention |= {state.changelog: state.retention_ms for step in subtopology.processors for state in step.states}
    patterns = [] if subtopology.pattern is None else [subtopology.pattern]
    together = [*subtopology.copartitioned, *patterns] if subtopology.by_task else []
    terminals = [branch.terminal for branch in subtopology.branches]
    return Subtopology(
        source_topics=sources,
        source_patterns=patterns,
        repartition_sources=repartition,
        repartition_sinks={
            *(end.topic for end in terminals if isinstance(end, (ToRows, ToPartials))),
            *(end.stream for end in terminals if isinstance(end, Aggregate) and end.stream is not None),
        },
        changelogs=[
            InternalTopic(
                name=store.changelog,
                replication_factor=replicas,
                configs=_changelog(retention.get(store.changelog), settings),
            )
            for store in subtopology.stores
        ],
        copartition_groups=[together] if together else [],
    )


def _changelog(retention_ms: int | None, settings: AppSettings) -> dict[str, str]:
    if not retention_ms:
        return _CHANGELOG
    # Event times would have the brokers delete the state of a replay of old records at once. By the time of its
    # last write, a window's record goes when the window has long been over.
    extra = settings.windowstore_changelog_additional_retention_ms
    return {
        "cleanup.policy": "compact,delete",
        "message.timestamp.type": "LogAppendTime",
        "retention.ms": str(retention_ms + extra),
    }
