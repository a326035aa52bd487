"""What the processors of `dedupe`, `latest_by`, `earliest_by` and `top` keep and give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregate_specs import check_grace, check_window
from kohort.spark.program.column_checks import one_of
from kohort.spark.program.operations import KEPT, PLACE, RANK, Dedupe, Latest, Top
from kohort.spark.program.processor_specs import StateKind, StateSpec

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

Changelog = Callable[[str, str], str]
"""(a store's name, what it is of) -> its changelog topic."""


def selection(
    where: str,
    name: str,
    operation: Dedupe | Latest | Top,
    group: Mapping[str, DataType],
    rows: StructType,
    event_time: str | None,
    changelog: Changelog,
) -> tuple[StructType, StateSpec]:
    """The columns that an operation gives, and its store, which has the processor's name.

    Args:
        where: how messages call it.
        group: the columns that state is kept by.
        rows: the columns of its rows.
        event_time: that of them which is.

    Raises:
        ProgramError: it can't be computed from these rows.
    """
    from pyspark.sql.types import IntegerType, StructField, StructType, TimestampType

    topic = changelog(name, f"{operation.what} {name!r}")
    match operation:
        case Dedupe():
            kept = StructType([] if operation.within_ms is None else [StructField("at", TimestampType())])
            times = operation.bucket_ms, operation.retention_ms
            return rows, StateSpec(KEPT, name, topic, StateKind.VALUE, kept, None, *times)
        case Latest(by):
            return rows, StateSpec(KEPT, name, topic, StateKind.VALUE, StructType([_ordered(where, by, group, rows)]))
        case Top(by=by, window=window, tied=tied):
            _ordered(where, by, group, rows)
            numbers = [StructField(name, IntegerType()) for name in ((RANK, PLACE) if tied else (RANK,))]
            starts: list[StructField] = []
            bucket_ms = retention_ms = 0
            if window is not None:
                check_window(where, window, tuple(group), rows)
                check_grace(where, window, event_time)
                starts.append(StructField("window", TimestampType()))
                if window.grace_ms is not None:
                    bucket_ms = window.size_ms
                    retention_ms = window.retention_ms or window.size_ms + window.grace_ms
            if taken := [each.name for each in (*starts, *numbers) if each.name in map(str.lower, rows.names)]:
                raise ProgramError(
                    f"{where}: it adds a column {taken[0]!r}, which the stream has already: rename it in a transform"
                )
            own = rows.fields
            if tied:  # a place that has no row any more comes with nulls
                own = [each if each.name in group else StructField(each.name, each.dataType) for each in own]
            others = [each for each in own if each.name not in group]
            return (
                StructType([*starts, *own, *numbers]),
                StateSpec(
                    KEPT, name, topic, StateKind.MAP, StructType([*numbers, *others]), StructType(numbers[-1:]),
                    bucket_ms, retention_ms,
                ),
            )  # fmt: skip


def _ordered(where: str, by: str, group: Mapping[str, DataType], rows: StructType) -> StructField:
    """The column that rows are ordered by."""
    from pyspark.sql.types import (
        BooleanType,
        DateType,
        NumericType,
        StringType,
        StructField,
        TimestampNTZType,
        TimestampType,
    )

    kind = one_of(f"{where}: {by!r}", by, rows)
    if by in group:
        raise ProgramError(f"{where}: {by!r} is grouped by, so it is the same in all rows of a group")
    if not isinstance(kind, (BooleanType, DateType, NumericType, StringType, TimestampNTZType, TimestampType)):
        raise ProgramError(
            f"{where}: {by!r} is {kind.simpleString().upper()}, which has no order here. It takes numbers, texts, "
            f"booleans, dates and timestamps; make one of it in a transform"
        )
    return StructField(by, kind)
