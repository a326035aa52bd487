"""What joins with tables that go from step to step as upserts keep and give, with the types of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregate_specs import group_types
from kohort.spark.program.column_checks import check_names, check_types, one_of, without_partition
from kohort.spark.program.internal_columns import DELETED
from kohort.spark.program.join_sides import (
    OWN_NAMES,
    CompiledJoin,
    field_names,
    marks,
    nullable,
    numbered,
    result_names,
    side_rows,
    state_spec,
)
from kohort.spark.program.operations import CLOCK, LEFT, OFFSET_COLUMN, RIGHT, TIME_COLUMN
from kohort.spark.program.processor_specs import Process, StateKind
from kohort.spark.program.selections import Changelog
from kohort.spark.program.streams import TableJoinDef
from kohort.spark.program.table_operations import (
    ENDING,
    PENDING,
    SINCE,
    VERSIONS,
    AsOfJoin,
    StreamTableJoin,
    TableJoin,
)

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType


@dataclass(frozen=True)
class JoinedFlow:
    """A side of a join as it comes in: `key` is a table's, None of a stream."""

    schema: StructType
    key: tuple[str, ...] | None
    event_time: str | None


@dataclass(frozen=True)
class JoinColumns:
    """Which columns of two sides are joined, and what becomes of the others.

    Attributes:
        on: the left columns, in the order of the right table's key.
        key: the right table's key.
        left: the left side's columns, without `_deleted`.
        added: the right side's, by what they are called in the result.
    """

    on: tuple[str, ...]
    key: tuple[str, ...]
    left: tuple[StructField, ...]
    added: tuple[tuple[str, StructField], ...]

    @property
    def result(self) -> list[StructField]:
        """The columns of the result, any of which may be null."""
        return [nullable(each) for each in self.left] + [field for _, field in self.added]


def join_columns(where: str, definition: TableJoinDef, left: JoinedFlow, right: JoinedFlow) -> JoinColumns:
    """Which columns are joined.

    Raises:
        ProgramError: they can't be.
    """
    from pyspark.sql.types import StructField

    assert right.key is not None
    on = _matched(where, definition.on, left, right)
    own = tuple(each for each in without_partition(left.schema).fields if each.name != DELETED)
    for schema in (left.schema, right.schema):
        check_types(where, without_partition(schema))
    if definition.columns is None:
        names = [each.name for each in without_partition(right.schema).fields if each.name != DELETED]
        given = {name: name for name in names if name not in right.key}
    else:
        given = definition.columns
        for name in given:
            one_of(f"{where}: columns: {name!r} of the table", name, right.schema)
    same = set(zip(right.key, on, strict=True))
    wanted = [(theirs, definition.prefix + ours) for theirs, ours in given.items()]
    wanted = [pair for pair in wanted if pair not in same]
    taken = {each.name.lower() for each in own}
    if twice := [theirs for theirs, ours in wanted if ours.lower() in taken]:
        raise ProgramError(
            f'{where}: both have the column {twice[0]!r}. Say prefix="other_", which goes before the names of the '
            f'other\'s columns, or name those that are wanted, as columns={{"{twice[0]}": "other_{twice[0]}"}}'
        )
    added = tuple((theirs, StructField(ours, right.schema[theirs].dataType)) for theirs, ours in wanted)
    check_names(where, [*(each.name for each in own), *(each.name for _, each in added)])
    return JoinColumns(on, right.key, own, added)


def _matched(where: str, given: Mapping[str, str] | None, left: JoinedFlow, right: JoinedFlow) -> tuple[str, ...]:
    """The left columns that are joined on, in the order of the right table's key, whose types they have."""
    key = right.key
    assert key is not None
    if given is None:
        own = key if left.key is None or set(left.key) == set(key) else left.key
        if len(own) != len(key):
            raise ProgramError(
                f"{where}: the keys are {_listed(own)} and {_listed(key)}: say which columns of the one are the key of "
                f'the other, as on={{"a column": "{key[0]}"}}'
            )
        given = dict(zip(own, key, strict=True))
    if set(given.values()) != set(key):
        raise ProgramError(
            f"{where} on {_listed(tuple(given.values()))}: a table is joined by its key, {_listed(key)}: say on= with "
            f"the other's columns for these, or make a table with another key, .as_stream().to_table(…)"
        )
    by_key = {theirs: ours for ours, theirs in given.items()}
    on = tuple(by_key[name] for name in key)
    group_types(f"{where} on", on, left.schema)
    for ours, theirs in zip(on, key, strict=True):
        found, wanted = left.schema[ours].dataType.simpleString(), right.schema[theirs].dataType.simpleString()
        if found != wanted:
            raise ProgramError(
                f"{where}: {ours!r} is {found.upper()}, and {theirs!r} of the table {wanted.upper()}: cast one of them"
            )
    return on


def table_join(
    where: str, how: str, name: str, columns: JoinColumns, sides: tuple[JoinedFlow, JoinedFlow], changelog: Changelog
) -> CompiledJoin:
    """The join of two tables by their keys.

    Args:
        where: how messages call it.
        name: of the processor, with which its stores' names begin.
    """
    from pyspark.sql.types import StructType

    on = columns.on
    own = [each for each in columns.left if each.name not in on]
    left, right = numbered(LEFT, own), numbered(RIGHT, [each for _, each in columns.added])
    keys = [each for each in columns.left if each.name in on]
    keys.sort(key=lambda each: on.index(each.name))
    union = StructType([*keys, *marks(), *left, *right])
    output = StructType([*keys, *map(nullable, own), *(each for _, each in columns.added), marks()[1]])
    operation = TableJoin(on, field_names(left), field_names(right), how)
    shown = result_names(left, own), result_names(right, [each for _, each in columns.added])
    states = (
        state_spec(name, LEFT, changelog, StateKind.VALUE, left, shown=shown[0]),
        state_spec(name, RIGHT, changelog, StateKind.VALUE, right, shown=shown[1]),
    )
    step = Process(name, _group(where, on, union), union, output, operation, states, on)
    named = (
        dict(zip(on, on, strict=True)) | shown[0],
        dict(zip(on, columns.key, strict=True))
        | dict(zip(field_names(right), [theirs for theirs, _ in columns.added], strict=True)),
    )
    ways = [
        side_rows(union, names, side=number, event_time=each.event_time)
        for number, (names, each) in enumerate(zip(named, sides, strict=True))
    ]
    return CompiledJoin(union, (ways[0], ways[1]), step)


def stream_table_join(
    where: str, how: str, name: str, columns: JoinColumns, stream: JoinedFlow, changelog: Changelog
) -> CompiledJoin:
    """The join of a stream and a table. Arguments are those of `table_join`."""
    from pyspark.sql.types import StructType

    on = columns.on
    right = numbered(RIGHT, [each for _, each in columns.added])
    union = StructType([*columns.left, *marks(), *right])
    output = StructType(columns.result)
    operation = StreamTableJoin(on, field_names(columns.left), field_names(right), how)
    shown = result_names(right, [each for _, each in columns.added])
    states = (state_spec(name, RIGHT, changelog, StateKind.VALUE, right, shown=shown),)
    step = Process(name, _group(where, on, union), union, output, operation, states, on, stream.event_time)
    own = {each.name: each.name for each in columns.left}
    theirs = dict(zip(on, columns.key, strict=True))
    theirs |= dict(zip(field_names(right), [each for each, _ in columns.added], strict=True))
    ways = (
        side_rows(union, own, side=0, event_time=stream.event_time, table=False),
        side_rows(union, theirs, side=1, timeless=True),
    )
    return CompiledJoin(union, ways, step)


def as_of_join(
    where: str, definition: TableJoinDef, name: str, columns: JoinColumns, sides: tuple[JoinedFlow, JoinedFlow],
    changelog: Changelog,
) -> CompiledJoin:  # fmt: skip
    """The join of a stream and the versions of a table. Arguments are those of `table_join`.

    Raises:
        ProgramError: a column has a name that the join uses itself.
    """
    from pyspark.sql.types import LongType, StructField, StructType, TimestampType

    assert definition.versions is not None
    on, added = columns.on, [field for _, field in columns.added]
    if taken := [each for each in field_names((*columns.left, *added)) if each.lower() in {*OWN_NAMES, SINCE}]:
        raise ProgramError(f"{where}: {taken[0]!r} is a name that joins as of a time have for themselves: rename it")
    since, deleted = StructField(SINCE, LongType()), marks()[1]
    union = StructType([*columns.left, *marks(), since, *added])
    output = StructType(columns.result)
    operation = AsOfJoin(
        on, field_names(columns.left), field_names(added), definition.how, definition.versions.history_ms,
        definition.versions.grace_ms,
    )  # fmt: skip
    clock = [StructField(each, LongType()) for each in ("table", "stream")]
    own = [StructField(TIME_COLUMN, LongType()), StructField(OFFSET_COLUMN, LongType())]
    kept = StructField(SINCE, TimestampType())  # whose texts are in the order of times, as numbers' aren't
    states = (
        state_spec(name, CLOCK, changelog, StateKind.VALUE, clock),
        state_spec(name, VERSIONS, changelog, StateKind.MAP, [kept, *added, deleted], [kept], shown={}),
        state_spec(name, ENDING, changelog, StateKind.VALUE, []),
        state_spec(name, PENDING, changelog, StateKind.VALUE, [*map(nullable, columns.left), *own]),
    )
    step = Process(name, _group(where, on, union), union, output, operation, states, on, sides[0].event_time)
    mine = {each.name: each.name for each in columns.left}
    theirs = dict(zip(on, columns.key, strict=True)) | {field.name: name for name, field in columns.added}
    ways = (
        side_rows(union, mine, side=0, event_time=sides[0].event_time, table=False),
        side_rows(union, theirs, side=1, event_time=sides[1].event_time, since=SINCE),
    )
    return CompiledJoin(union, ways, step)


def _group(where: str, on: tuple[str, ...], schema: StructType) -> tuple[tuple[str, DataType], ...]:
    return group_types(f"{where} on", on, schema)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))
