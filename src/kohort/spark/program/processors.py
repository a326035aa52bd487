"""What a processor keeps and gives, with the types of its columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregate_specs import group_types
from kohort.spark.program.column_checks import check_types
from kohort.spark.program.operations import TIMERS, UserFunction
from kohort.spark.program.processor_specs import Process, StateKind, StateSpec
from kohort.spark.program.sources import parsed_schema
from kohort.spark.program.state_definitions import StateDef
from kohort.spark.program.streams import ProcessDef

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Changelog = Callable[[str, str], str]
"""(a store's name, what it is of) -> its changelog topic."""


def processor(
    where: str,
    definition: ProcessDef,
    schema: StructType,
    key: tuple[str, ...],
    event_time: str | None,
    changelog: Changelog,
) -> Process:
    """A function of the user's as a step.

    Args:
        where: how messages call it.
        schema: the columns of its rows.
        key: what the subtopology's input is keyed by, in order.
        event_time: the column of the rows that is.

    Raises:
        ProgramError: it can't be run, or keep such state.
    """
    from pyspark.sql.types import StringType, StructField, StructType, TimestampType

    group = group_types(f"{where}: group_by", definition.grouped._columns, schema)
    check_types(where, schema)
    output = parsed_schema(f"{where}: output", definition.output)
    columns = StructType([StructField(name, kind) for name, kind in group])
    states = [
        _state(where, definition.name, name, state, columns, changelog) for name, state in definition.states.items()
    ]
    if definition.timers:
        store = f"{definition.name}-{TIMERS}"
        _check_taken(f"{where}: timers", columns, ["at", "name"])
        own = StructType([*columns.fields, StructField("at", TimestampType()), StructField("name", StringType())])
        states.append(
            StateSpec(TIMERS, store, changelog(store, f"timers of {definition.name!r}"), StateKind.VALUE, own)
        )
    return Process(
        definition.name, group, schema, output, UserFunction(definition.function), tuple(states), key, event_time
    )


def _state(
    where: str, processor: str, name: str, definition: StateDef, group: StructType, changelog: Changelog
) -> StateSpec:
    from pyspark.sql.types import StructType

    there = f"{where}: state {name!r}"
    columns = parsed_schema(there, definition.columns)
    _check_taken(there, group, columns.names)
    map_key = None
    if definition.map_key is not None:
        map_key = parsed_schema(f"{there}: key", definition.map_key)
        group_types(f"{there}: key", tuple(map_key.names), map_key)
        _check_taken(there, StructType([*group.fields, *columns.fields]), map_key.names)
        columns = StructType([*map_key.fields, *columns.fields])
    store = f"{processor}-{name}"
    return StateSpec(
        name, store, changelog(store, f"state {name!r} of {processor!r}"), definition.kind, columns, map_key
    )


def _check_taken(where: str, taken: StructType, names: list[str]) -> None:
    if clash := [name for name in names if name.lower() in {each.lower() for each in taken.names}]:
        raise ProgramError(f"{where}: there can't be another column {clash[0]!r}")
