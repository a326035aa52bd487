"""A program's parts as the group is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kohort.spark.program.compiled import (
    AggregateSpec,
    CompiledSubtopology,
    RowsInput,
    ToPartials,
    TopicInput,
    ToRows,
)
from kohort.spark.program.errors import ProgramError
from kohort.spark.program.settings import AppSettings
from kohort.streams.topology import InternalTopic, Subtopology, Topology, TopologyError, check

__all__ = ["topology"]

# Records of internal topics have event times, and those may lie ahead of the broker's clock: a timetable's, say.
_EVENT_TIME: Final = {"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": str(2**63 - 1)}
_REPARTITION: Final = {
    "cleanup.policy": "delete",
    **_EVENT_TIME,
    "retention.ms": "-1",  # they are removed when they have been consumed, not before
    "segment.bytes": str(50 * 1024 * 1024),
}
_CHANGELOG: Final = {"cleanup.policy": "compact", **_EVENT_TIME}


def topology(parts: Sequence[CompiledSubtopology], settings: AppSettings) -> Topology:
    """What a member says to its group.

    Raises:
        ProgramError: no group would take it.
    """
    try:
        found = Topology({part.id: _subtopology(part, settings) for part in parts})
        check(found)
    except TopologyError as error:
        raise ProgramError(str(error)) from None
    return found


def _subtopology(part: CompiledSubtopology, settings: AppSettings) -> Subtopology:
    replicas = max(settings.replication_factor, 0)  # 0: the brokers' default
    sources = [table.source.topic for table in part.tables]
    repartition = []
    if isinstance(part.input, TopicInput):
        sources.append(part.input.topic)
    elif part.input is not None:
        partitions = part.input.partitions if isinstance(part.input, RowsInput) else 0
        repartition.append(
            InternalTopic(
                name=part.input.topic, partitions=partitions, replication_factor=replicas, configs=_REPARTITION
            )
        )
    retained = {spec.changelog: spec for spec in part.aggregates}
    together = part.input_topics
    return Subtopology(
        source_topics=sources,
        repartition_sources=repartition,
        repartition_sinks={
            branch.terminal.topic for branch in part.branches if isinstance(branch.terminal, (ToRows, ToPartials))
        },
        changelogs=[
            InternalTopic(
                name=store.changelog,
                replication_factor=replicas,
                configs=_changelog(retained.get(store.changelog), settings),
            )
            for store in part.stores
        ],
        copartition_groups=[together] if len(together) > 1 else [],
    )


def _changelog(spec: AggregateSpec | None, settings: AppSettings) -> dict[str, str]:
    if spec is None or spec.window is None or spec.window.retention_ms is None:
        return _CHANGELOG
    # Event times would have the brokers delete the state of a replay of old records at once. By the time of its
    # last write, a window's record goes when the window has long been over.
    extra = settings.windowstore_changelog_additional_retention_ms
    return {
        "cleanup.policy": "compact,delete",
        "message.timestamp.type": "LogAppendTime",
        "retention.ms": str(spec.window.retention_ms + extra),
    }
