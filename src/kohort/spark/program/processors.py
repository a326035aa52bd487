"""What a processor keeps and gives, with the types of its columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregate_specs import group_types
from kohort.spark.program.column_checks import check_types
from kohort.spark.program.function_definitions import FunctionDef
from kohort.spark.program.function_outputs import united
from kohort.spark.program.operations import CLOCK_TIMERS, TIMERS, TTL, WRITTEN, UserFunction
from kohort.spark.program.processor_specs import Operation, Process, StateKind, StateSpec
from kohort.spark.program.selections import Changelog, selection
from kohort.spark.program.sources import parsed_schema
from kohort.spark.program.state_definitions import StateDef
from kohort.spark.program.streams import ProcessDef

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def processor(
    where: str,
    name: str,
    definition: ProcessDef,
    schema: StructType,
    key: tuple[str, ...],
    event_time: str | None,
    changelog: Changelog,
) -> Process:
    """A processor as a step.

    Args:
        where: how messages call it.
        name: its name.
        schema: the columns of its rows.
        key: what the subtopology's input is keyed by, in order.
        event_time: the column of the rows that is.

    Raises:
        ProgramError: it can't be run, or keep such state.
    """
    group = group_types(f"{where}: group_by", definition.grouped._columns, schema)
    check_types(where, schema)
    operation: Operation
    if isinstance(definition.operation, FunctionDef):
        output, outputs = _outputs(where, definition.operation)
        operation = UserFunction(definition.operation.function, outputs)
        states = _kept(where, name, definition.operation, group, changelog)
    else:
        operation = definition.operation
        output, state = selection(where, name, operation, dict(group), schema, event_time, changelog)
        states = (state,)
    return Process(name, group, schema, output, operation, states, key, event_time)


def _outputs(where: str, definition: FunctionDef) -> tuple[StructType, tuple[tuple[str, StructType], ...]]:
    """What a function of the user's gives, and its several outputs, if it has such."""
    if not definition.outputs:
        return parsed_schema(f"{where}: output", definition.output), ()
    outputs = tuple(
        (name, parsed_schema(f"{where}: output {name!r}", schema)) for name, schema in definition.outputs.items()
    )
    return united([schema for _, schema in outputs]), outputs


def _kept(
    where: str, processor: str, definition: FunctionDef, group: tuple[tuple[str, DataType], ...], changelog: Changelog
) -> tuple[StateSpec, ...]:
    """The stores of a function of the user's."""
    from pyspark.sql.types import StringType, StructField, StructType, TimestampType

    columns = StructType([StructField(name, kind) for name, kind in group])
    states = [
        spec
        for name, state in definition.states.items()
        for spec in _states(where, processor, name, state, columns, changelog)
    ]
    for by in sorted(definition.timers):
        clock = by == "processing"
        name = CLOCK_TIMERS if clock else TIMERS
        store = f"{processor}-{name}"
        _check_taken(f"{where}: timers", columns, ["at", "name"])
        kept = StructType([*columns.fields, StructField("at", TimestampType()), StructField("name", StringType())])
        topic = changelog(store, f"timers of {processor!r}")
        states.append(StateSpec(name, store, topic, StateKind.VALUE, kept, own=True, clock=clock))
    return tuple(states)


def _states(
    where: str, processor: str, name: str, definition: StateDef, group: StructType, changelog: Changelog
) -> Iterator[StateSpec]:
    """A state's store, and the index by which what is in it expires."""
    from pyspark.sql.types import LongType, StructField, StructType

    there = f"{where}: state {name!r}"
    columns = parsed_schema(there, definition.columns)
    _check_taken(there, group, columns.names)
    map_key = None
    if definition.map_key is not None:
        map_key = parsed_schema(f"{there}: key", definition.map_key)
        group_types(f"{there}: key", tuple(map_key.names), map_key)
        _check_taken(there, StructType([*group.fields, *columns.fields]), map_key.names)
        columns = StructType([*map_key.fields, *columns.fields])
    store, what = f"{processor}-{name}", f"state {name!r} of {processor!r}"
    if not definition.ttl_ms:
        yield StateSpec(name, store, changelog(store, what), definition.kind, columns, map_key)
        return
    _check_taken(there, StructType([*group.fields, *columns.fields]), [WRITTEN])
    columns = StructType([*columns.fields, StructField(WRITTEN, LongType())])
    yield StateSpec(
        name, store, changelog(store, what), definition.kind, columns, map_key,
        ttl_ms=definition.ttl_ms, ttl_by_clock=definition.ttl_by == "processing",
    )  # fmt: skip
    index = f"{store}-{TTL}"
    topic = changelog(index, f"the times of {what}")
    yield StateSpec(f"{name}-{TTL}", index, topic, StateKind.VALUE, StructType([]), own=True)


def _check_taken(where: str, taken: StructType, names: list[str]) -> None:
    if clash := [name for name in names if name.lower() in {each.lower() for each in taken.names}]:
        raise ProgramError(f"{where}: there can't be another column {clash[0]!r}")
