"""What queries need to know of a program's stores."""

from __future__ import annotations

from collections.abc import Iterator

from kohort.spark.program.compiled import AggregateSpec, CompiledSubtopology, Program, Route, TableStore
from kohort.spark.program.operations import Top
from kohort.spark.program.processor_specs import Process, StateKind, StateSpec
from kohort.spark.queries.queryable import StoreInfo


def store_infos(program: Program) -> dict[str, StoreInfo]:
    return {info.name: info for info in _infos(program)}


def inner_stores(program: Program) -> frozenset[str]:
    """What steps keep for themselves, as timers and clocks: stores that aren't answered for."""
    stores = {store.name for subtopology in program.subtopologies for store in subtopology.stores}
    return frozenset(stores - {info.name for info in _infos(program)})


def _infos(program: Program) -> Iterator[StoreInfo]:
    for subtopology in program.subtopologies:
        yield from (_of_table(table, subtopology.id) for table in subtopology.tables)
        yield from (_of_aggregate(spec, subtopology) for spec in subtopology.aggregates)
        for step in subtopology.processors:
            yield from (_of_state(step, state, subtopology) for state in step.states if not state.own)
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


def _of_state(step: Process, state: StateSpec, subtopology: CompiledSubtopology) -> StoreInfo:
    """A state of a processor: its keys are those of groups, of a map's entries, or of pieces of lists.

    Where it is kept by time, keys begin with a window: of `top` its own, of others a bucket of time.
    """
    match state.kind:
        case StateKind.MAP if state.map_key is not None:
            within = tuple((each.name, each.dataType.simpleString()) for each in state.map_key.fields)
        case StateKind.LIST:
            within = (("at", "bigint"), ("piece", "bigint"))
        case _:
            within = ()
    group = tuple((name, kind.simpleString()) for name, kind in step.group)
    return StoreInfo(
        name=state.store,
        columns=(*group, *within),
        windowed=_is_windowed(step, state),
        json_keys=True,
        subtopology=subtopology.id,
        route=Route.TEXT,
        routed_by=step.routed_by,
        route_names=step.route_names,
        partition_certain=not subtopology.read,
        partitioner=subtopology.read[0].partitioner if subtopology.read else "murmur2",
        group=len(group) if within else 0,
        shown=state.shown,
    )


def _is_windowed(step: Process, state: StateSpec) -> bool:
    operation = step.operation
    return state.bucket_ms > 0 or (isinstance(operation, Top) and operation.window is not None)


def _of_aggregate(spec: AggregateSpec, subtopology: CompiledSubtopology) -> StoreInfo:
    return StoreInfo(
        name=spec.name,
        columns=tuple((name, kind.simpleString()) for name, kind in spec.group),
        windowed=spec.window is not None,
        json_keys=True,
        subtopology=subtopology.id,
        route=spec.route,
        routed_by=spec.routed_by,
        route_names=spec.route_names,
        partition_certain=not subtopology.read,
        partitioner=subtopology.read[0].partitioner if subtopology.read else "murmur2",
    )
