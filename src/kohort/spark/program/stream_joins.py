"""What a join of two streams keeps and gives, with the types of its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregate_specs import group_types
from kohort.spark.program.column_checks import check_names, check_types, one_of, without_partition
from kohort.spark.program.join_sides import (
    CompiledJoin,
    field_names,
    nullable,
    numbered,
    result_names,
    side_rows,
    state_spec,
)
from kohort.spark.program.operations import CLOCK, LEFT, OFFSET_COLUMN, RIGHT, SIDE, TIME_COLUMN, UNMATCHED, StreamJoin
from kohort.spark.program.processor_specs import Process, StateKind
from kohort.spark.program.selections import Changelog
from kohort.spark.program.streams import StreamJoinDef

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_LEAST_BUCKET_MS = 1_000


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
    for ours, others in on.items():
        found, wanted = one_of(f"{where} on {others!r}", others, right), left[ours].dataType
        if found.simpleString() != wanted.simpleString():
            raise ProgramError(
                f"{where}: {ours!r} is {wanted.simpleString().upper()}, and {others!r} of the other stream "
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
    output = StructType([nullable(each) for each in (*(left[name] for name in on), *left_fields, *right_fields)])
    check_names(where, output.names)
    keys = [StructField(name, left[name].dataType) for name in on]
    kept_left, kept_right = numbered(LEFT, left_fields), numbered(RIGHT, right_fields)
    union = StructType([*keys, StructField(SIDE, IntegerType()), *kept_left, *kept_right])
    own = [StructField(TIME_COLUMN, LongType()), StructField(OFFSET_COLUMN, LongType())]
    operation = StreamJoin(
        tuple(on), field_names(kept_left), field_names(kept_right), definition.how,
        definition.before_ms, definition.after_ms, definition.grace_ms,
    )  # fmt: skip
    bucket = max(definition.before_ms + definition.after_ms, _LEAST_BUCKET_MS)
    clock = [StructField(each, LongType()) for each in ("left", "right", "forgotten")]
    mine, theirs = result_names(kept_left, left_fields), result_names(kept_right, right_fields)
    states = [
        state_spec(name, CLOCK, changelog, StateKind.VALUE, clock),
        state_spec(name, LEFT, changelog, StateKind.LIST, [*keys, *kept_left, *own], bucket_ms=bucket, shown=mine),
        state_spec(name, RIGHT, changelog, StateKind.LIST, [*keys, *kept_right, *own], bucket_ms=bucket, shown=theirs),
    ]
    if operation.keeps:
        states.append(state_spec(name, UNMATCHED, changelog, StateKind.VALUE, [*output.fields, own[0]]))
    step = Process(name, group, union, output, operation, tuple(states), tuple(on))
    named = {each: each for each in on} | mine, on | theirs
    sides = [
        side_rows(union, names, side=number, event_time=event_time, table=False)
        for number, (names, event_time) in enumerate(zip(named, event_times, strict=True))
    ]
    return CompiledJoin(union, (sides[0], sides[1]), step)
