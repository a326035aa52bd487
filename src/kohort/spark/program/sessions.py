"""What says which session a row is in, before the aggregate of the sessions: what it keeps and gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregate_specs import check_grace, check_window, group_types
from kohort.spark.program.aggregates import max_
from kohort.spark.program.column_checks import check_types, one_of
from kohort.spark.program.internal_columns import ABSORBED, CHANGE, SESSION
from kohort.spark.program.operations import DUE, SESSIONS, Sessions
from kohort.spark.program.processor_specs import Process, StateKind, StateSpec
from kohort.spark.program.selections import Changelog
from kohort.spark.program.shortcuts import quoted
from kohort.spark.program.streams import AggregateDef, GroupedStream
from kohort.spark.program.windows import SessionSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField, StructType


def sessions_of(
    where: str,
    definition: AggregateDef,
    schema: StructType,
    key: tuple[str, ...],
    event_time: str | None,
    changelog: Changelog,
) -> Process:
    """The step before an aggregate of sessions. Its stores are `{aggregate}-sessions` and `{aggregate}-due`.

    Args:
        where: how messages call it.
        schema: the columns of its rows.
        key: what the subtopology's input is keyed by, in order.
        event_time: the column of the rows that is.

    Raises:
        ProgramError: rows can't be in sessions so.
    """
    from pyspark.sql.types import (
        ArrayType,
        BooleanType,
        IntegerType,
        IntegralType,
        LongType,
        StructField,
        StructType,
        TimestampType,
    )

    grouped, window = definition.grouped, definition.grouped._window
    assert isinstance(window, SessionSpec)
    group = group_types(f"{where}: group_by", grouped._columns, schema)
    check_window(where, window, grouped._columns, schema)
    check_grace(where, window, event_time)
    check_types(where, schema)
    if window.gap_column is not None:
        there = f"{where}: session(gap_column={window.gap_column!r})"
        kind = one_of(there, window.gap_column, schema)
        if not isinstance(kind, IntegralType):
            raise ProgramError(
                f"{there}: a gap is a whole number of milliseconds or an INTERVAL DAY TO SECOND, but "
                f"{window.gap_column!r} is {kind.simpleString().upper()}: make one of it in a transform"
            )
    reserved = ("window", "start", "at", "closed", "over")
    if taken := [name for name in grouped._columns if name.lower() in reserved]:
        raise ProgramError(f"{where}: no column that sessions are grouped by can be called {taken[0]!r}: rename it")

    def state(called: str, kind: StateKind, columns: list[StructField], map_key: StructType | None = None) -> StateSpec:
        store = f"{definition.name}-{called}"
        topic = changelog(store, f"a store of the aggregate {definition.name!r}")
        return StateSpec(called, store, topic, kind, StructType(columns), map_key, own=True)

    over = StructField("over", TimestampType())
    times = [StructField(name, LongType()) for name in ("start", "last", "until")]
    entry = [StructField("start", LongType()), StructField("at", LongType()), StructField("closed", BooleanType())]
    states = (
        state(SESSIONS, StateKind.MAP, [over, *times], StructType([over])),
        state(DUE, StateKind.VALUE, [*(StructField(name, kind) for name, kind in group), *entry]),
    )
    fields = [StructField(each.name, each.dataType) for each in schema.fields]
    added = [StructField(SESSION, LongType()), StructField(ABSORBED, ArrayType(LongType()))]
    output = StructType([*fields, *added, StructField(CHANGE, IntegerType())])
    operation = Sessions(window, definition.emit == "close")
    name = f"{definition.name}-{SESSIONS}"
    return Process(name, group, schema, output, operation, states, key, window.column)


def gap_in_ms(where: str, window: SessionSpec, schema: StructType) -> Callable[[DataFrame], DataFrame] | None:
    """What makes milliseconds of a gap that is an INTERVAL; None if it is none.

    Raises:
        ProgramError: there is no such column.
    """
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import DayTimeIntervalType

    name = window.gap_column
    if name is None:
        return None
    kind = one_of(f"{where}: session(gap_column={name!r})", name, schema)
    if not isinstance(kind, DayTimeIntervalType):
        return None

    def gap(rows: DataFrame) -> DataFrame:
        return rows.withColumn(name, F.unix_millis(F.timestamp_millis(F.lit(0)) + quoted(name)))

    return gap


def with_last_row(definition: AggregateDef) -> AggregateDef:
    """The same, with the time of a session's last row as a result, where that has a name."""
    grouped, window = definition.grouped, definition.grouped._window
    if not isinstance(window, SessionSpec) or window.end is None:
        return definition
    bare = GroupedStream(grouped._stream, grouped._columns, replace(window, end=None))
    return replace(definition, grouped=bare, aggregations={window.end: max_(window.column), **definition.aggregations})
