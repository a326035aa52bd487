"""A program's parts as the group is told of them, and the fingerprint of what they keep."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kohort.spark.program.aggregates.identity import identity
from kohort.spark.program.compiled import (
    AggregateSpec,
    CompiledSubtopology,
    Join,
    PartialsInput,
    RowsInput,
    TableStore,
    ToPartials,
    TopicInput,
    ToRows,
)
from kohort.spark.program.errors import ProgramError
from kohort.spark.program.settings import AppSettings
from kohort.streams.topology import InternalTopic, Subtopology, Topology, TopologyError, check

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = ["fingerprint", "topology"]

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


# The fingerprint -----------------------------------------------------------------------------------------------------


def fingerprint(parts: Sequence[CompiledSubtopology]) -> str:
    """16 hex digits that change with what stores and repartition topics hold, and with what it means.

    So each aggregation is in it with all it is told, those of users with the text of their expressions. Functions over
    rows aren't, nor are outputs, settings and policies: these may change from one start to the next. Of Arrow functions
    only the schema of the state is: one that was mended goes on with the state that it finds.
    """
    text = json.dumps([_part(part) for part in parts], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _part(part: CompiledSubtopology) -> Any:
    said: dict[str, Any] = {"id": part.id, "tables": [_table(table) for table in part.tables]}
    match part.input:
        case TopicInput(source):
            said["topic"] = source.topic
        case RowsInput():
            said["rows"] = [part.input.topic, _fields(part.input.schema), list(part.input.key)]
        case PartialsInput():
            said["partials"] = part.input.topic
        case None:
            pass
    said["aggregates"] = [_aggregate(spec) for spec in part.aggregates]
    said["joins"] = sorted(
        {step.table.name for branch in part.branches for step in branch.steps if isinstance(step, Join)}
    )
    said["ends"] = [
        branch.terminal.topic for branch in part.branches if isinstance(branch.terminal, (ToRows, ToPartials))
    ]
    return said


def _table(table: TableStore) -> Any:
    return [table.name, table.source.topic, list(table.source.key), _fields(table.source.schema)]


def _aggregate(spec: AggregateSpec) -> Any:
    window = spec.window
    return {
        "name": spec.name,
        "group": [[name, _grouped_by(kind)] for name, kind in spec.group],
        "window": None if window is None else [window.column, window.size_ms, window.slide_ms],
        "state": [[name, kind.simpleString()] for name, kind in spec.state_columns],
        "by": [[name, identity(each)] for name, each in spec.aggregations],
        "routed": [spec.route.value, list(spec.routed_by)],
    }


def _grouped_by(kind: DataType) -> str:
    from pyspark.sql.types import TimestampType

    # Keys once had all times with µs, so stores that have such keys are others.
    return f"{kind.simpleString()}, ms" if isinstance(kind, TimestampType) else kind.simpleString()


def _fields(schema: StructType) -> list[list[str]]:
    return [[field.name, field.dataType.simpleString()] for field in schema.fields]
