"""What a join of two streams keeps and gives, with the types of its columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregate_specs import group_types
from kohort.spark.program.column_checks import check_names, check_types, one_of, without_partition
from kohort.spark.program.operations import CLOCK, LEFT, OFFSET_COLUMN, RIGHT, SIDE, TIME_COLUMN, UNMATCHED, StreamJoin
from kohort.spark.program.processor_specs import Process, StateKind, StateSpec
from kohort.spark.program.selections import Changelog
from kohort.spark.program.streams import StreamJoinDef

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField, StructType

_LEAST_BUCKET_MS = 1_000


@dataclass(frozen=True)
class JoinSide:
    """One side of a join, on its way into the topic that both go through.

    Attributes:
        rows: makes the topic's rows of the side's.
        event_time: the column of these that is the event time; None for the record's timestamp.
    """

    rows: Callable[[DataFrame], DataFrame]
    event_time: str | None


@dataclass(frozen=True)
class CompiledJoin:
    """A join of two streams.

    Attributes:
        schema: the columns of the topic that both sides go through.
    """

    schema: StructType
    sides: tuple[JoinSide, JoinSide]
    step: Process


def stream_join(
    where: str,
    definition: StreamJoinDef,
    name: str,
    schemas: tuple[StructType, StructType],
    event_times: tuple[str | None, str | None],
    changelog: Changelog,
) -> CompiledJoin:
    """The join of two streams with these columns.

    Args:
        where: how messages call it.
        name: of the processor, with which its stores' names begin.
        event_times: the columns that are.

    Raises:
        ProgramError: they can't be joined.
    """
    from pyspark.sql.types import IntegerType, LongType, StructField, StructType

    left, right = map(without_partition, schemas)
    on = definition.on
    group = group_types(f"{where} on", tuple(on), left)
    for mine, theirs in on.items():
        found, wanted = one_of(f"{where} on {theirs!r}", theirs, right), left[mine].dataType
        if found.simpleString() != wanted.simpleString():
            raise ProgramError(
                f"{where}: {mine!r} is {wanted.simpleString().upper()}, and {theirs!r} of the other stream "
                f"{found.simpleString().upper()}: cast one of them in a transform"
            )
    for schema in (left, right):
        check_types(where, schema)
    left_fields = [each for each in left.fields if each.name not in on]
    right_fields = [each for each in right.fields if each.name not in on.values()]
    taken = {each.name.lower() for each in (*left_fields, *(left[name] for name in on))}
    if twice := [each.name for each in right_fields if each.name.lower() in taken]:
        raise ProgramError(
            f"{where}: both streams have the column {twice[0]!r}: rename it in a transform of one of them, or leave it "
            f"out there"
        )
    output = StructType([_nullable(each) for each in (*(left[name] for name in on), *left_fields, *right_fields)])
    check_names(where, output.names)
    keys = [StructField(name, left[name].dataType) for name in on]
    columns = [
        [StructField(f"_{side}{number}", each.dataType) for number, each in enumerate(fields)]
        for side, fields in ((LEFT, left_fields), (RIGHT, right_fields))
    ]
    union = StructType([*keys, StructField(SIDE, IntegerType()), *columns[0], *columns[1]])
    own = [StructField(TIME_COLUMN, LongType()), StructField(OFFSET_COLUMN, LongType())]
    operation = StreamJoin(
        tuple(on), tuple(each.name for each in columns[0]), tuple(each.name for each in columns[1]), definition.how,
        definition.before_ms, definition.after_ms, definition.grace_ms,
    )  # fmt: skip
    bucket = max(definition.before_ms + definition.after_ms, _LEAST_BUCKET_MS)

    def state(called: str, kind: StateKind, kept: list[StructField], bucket_ms: int = 0) -> StateSpec:
        store = f"{name}-{called}"
        topic = changelog(store, f"a store of the join {name!r}")
        return StateSpec(called, store, topic, kind, StructType(kept), bucket_ms=bucket_ms)

    states = [
        state(CLOCK, StateKind.VALUE, [StructField(each, LongType()) for each in ("left", "right", "forgotten")]),
        state(LEFT, StateKind.LIST, [*keys, *columns[0], *own], bucket),
        state(RIGHT, StateKind.LIST, [*keys, *columns[1], *own], bucket),
    ]
    if operation.keeps:
        states.append(state(UNMATCHED, StateKind.VALUE, [*output.fields, own[0]]))
    step = Process(name, group, union, output, operation, tuple(states), tuple(on))
    sides = (
        _side(0, list(on), list(on), left_fields, union, event_times[0]),
        _side(1, list(on), list(on.values()), right_fields, union, event_times[1]),
    )
    return CompiledJoin(union, sides, step)


def _side(
    number: int, on: list[str], named: list[str], fields: list[StructField], union: StructType, event_time: str | None
) -> JoinSide:
    own = {f"_{(LEFT, RIGHT)[number]}{at}": each.name for at, each in enumerate(fields)}
    names = dict(zip(on, named, strict=True)) | own

    def rows(given: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812

        def column(name: str) -> Column:
            if name == SIDE:
                return F.lit(number)
            if name in names:
                return F.col("`" + names[name].replace("`", "``") + "`")
            return F.lit(None).cast(union[name].dataType)

        return given.select(*[column(each.name).alias(each.name) for each in union.fields])

    times = [name for name, given in names.items() if given == event_time]
    return JoinSide(rows, times[0] if times else None)


def _nullable(field: StructField) -> StructField:
    from pyspark.sql.types import StructField

    return StructField(field.name, field.dataType)
