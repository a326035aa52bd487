"""What all joins through a topic have: the rows of their sides in it, under names of its own, and their stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kohort.spark.program.internal_columns import DELETED
from kohort.spark.program.operations import SIDE
from kohort.spark.program.processor_specs import Process, StateKind, StateSpec
from kohort.spark.program.selections import Changelog
from kohort.spark.program.shortcuts import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField, StructType

_NEVER: Final = "_never"
"""The time of rows that don't move time on."""
_TIMED: Final = "_timed"
"""The event time of rows that have it in a column of the topic."""
OWN_NAMES: Final = frozenset({SIDE, _NEVER, _TIMED})
"""Columns beside those of the sides, on the way into the topic."""


@dataclass(frozen=True)
class JoinSide:
    """One side of a join, on its way into the topic that both go through.

    Attributes:
        rows: makes the topic's rows of the side's.
        event_time: the column of these that is the event time; None for the record's timestamp.
        since: the column of the topic that has it; None: the topic's records have it as their timestamp.
    """

    rows: Callable[[DataFrame], DataFrame]
    event_time: str | None
    since: str | None = None


@dataclass(frozen=True)
class CompiledJoin:
    """A join whose sides meet in one topic.

    Attributes:
        schema: the columns of the topic that both sides go through.
    """

    schema: StructType
    sides: tuple[JoinSide, JoinSide]
    step: Process


def side_rows(
    union: StructType,
    names: Mapping[str, str],
    *,
    side: int,
    event_time: str | None = None,
    table: bool = True,
    timeless: bool = False,
    since: str | None = None,
) -> JoinSide:
    """One side on its way into the topic.

    Args:
        union: the topic's columns.
        names: the side's columns, by those of the topic that they become.
        event_time: that of the side's columns which is.
        table: whether its rows have `_deleted`.
        timeless: whether its records' times are those of 1970, so that they move no stream time on.
        since: the topic's column that gets the event time (ms); its records are timeless, too.
    """

    def rows(given: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812

        def column(name: str) -> Column:
            if name == SIDE:
                return F.lit(side)
            if name == DELETED:
                return F.col(DELETED) if table else F.lit(False)
            if name in names:
                return quoted(names[name])
            return F.lit(None).cast(union[name].dataType)

        columns = [column(each.name).alias(each.name) for each in union.fields]
        if timeless:
            columns.append(F.timestamp_seconds(F.lit(0)).alias(_NEVER))
        if since is not None and event_time is not None:
            columns.append(quoted(event_time).alias(_TIMED))
        return given.select(*columns)

    if since is not None:
        return JoinSide(rows, None if event_time is None else _TIMED, since)
    times = [name for name, given in names.items() if given == event_time]
    return JoinSide(rows, _NEVER if timeless else times[0] if times else None)


def state_spec(
    name: str,
    called: str,
    changelog: Changelog,
    kind: StateKind,
    kept: Sequence[StructField],
    map_key: Sequence[StructField] | None = None,
    bucket_ms: int = 0,
    shown: Mapping[str, str] | None = None,
) -> StateSpec:
    """A store of a join. `shown`: what users call its columns; None: the join keeps it for itself."""
    from pyspark.sql.types import StructType

    store = f"{name}-{called}"
    topic = changelog(store, f"a store of the join {name!r}")
    key = None if map_key is None else StructType([*map_key])
    names = () if shown is None else tuple(shown.items())
    return StateSpec(called, store, topic, kind, StructType([*kept]), key, bucket_ms, own=shown is None, shown=names)


def marks() -> list[StructField]:
    """The columns that topics of joins have beside those of the sides."""
    from pyspark.sql.types import BooleanType, IntegerType, StructField

    return [StructField(SIDE, IntegerType()), StructField(DELETED, BooleanType())]


def numbered(side: str, fields: Sequence[StructField]) -> list[StructField]:
    """Columns under names that no other side's have."""
    from pyspark.sql.types import StructField

    return [StructField(f"_{side}{number}", each.dataType) for number, each in enumerate(fields)]


def field_names(fields: Sequence[StructField]) -> tuple[str, ...]:
    """What columns are called."""
    return tuple(each.name for each in fields)


def result_names(stored: Sequence[StructField], fields: Sequence[StructField]) -> dict[str, str]:
    """What stored columns are called in the result, whose columns `fields` are."""
    return dict(zip(field_names(stored), field_names(fields), strict=True))


def nullable(field: StructField) -> StructField:
    """The same column, which may be null."""
    from pyspark.sql.types import StructField

    return StructField(field.name, field.dataType)
