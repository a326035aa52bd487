"""What a program says of its stores, for queries."""

from __future__ import annotations

from collections.abc import Iterator

from kohort.spark.program.compiled import AggregateSpec, CompiledSubtopology, Program, Route, TableStore, TopicInput
from kohort.spark.queries.queryable import StoreInfo

__all__ = ["store_infos"]


def store_infos(program: Program) -> dict[str, StoreInfo]:
    """All stores of a program, by name."""
    return {info.name: info for info in _infos(program)}


def _infos(program: Program) -> Iterator[StoreInfo]:
    for part in program.subtopologies:
        yield from (_of_table(table, part.id) for table in part.tables)
        yield from (_of_aggregate(spec, part) for spec in part.aggregates)
    yield from (_of_table(table, None) for table in program.globals)


def _of_table(table: TableStore, subtopology: str | None) -> StoreInfo:
    key = table.source.key
    return StoreInfo(
        name=table.name,
        columns=tuple((name, table.source.schema[name].dataType.simpleString()) for name in key),
        windowed=False,
        json_keys=len(key) != 1,
        subtopology=subtopology,
        route=Route.TEXT,
        routed_by=key,
        micros=True,
        partitioner=table.source.partitioner,
    )


def _of_aggregate(spec: AggregateSpec, part: CompiledSubtopology) -> StoreInfo:
    return StoreInfo(
        name=spec.name,
        columns=tuple((name, kind.simpleString()) for name, kind in spec.group),
        windowed=spec.window is not None,
        json_keys=True,
        subtopology=part.id,
        route=spec.route,
        routed_by=spec.routed_by,
        sure=not isinstance(part.input, TopicInput),
        partitioner=part.input.source.partitioner if isinstance(part.input, TopicInput) else "murmur2",
    )
