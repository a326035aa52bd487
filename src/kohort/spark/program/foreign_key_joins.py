"""What the steps of a join by foreign key keep and give; what they do is in `jobs.processors.foreign_key_join`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kohort.spark.program.aggregate_specs import group_types
from kohort.spark.program.join_sides import (
    JoinSide,
    field_names,
    marks,
    nullable,
    numbered,
    result_names,
    side_rows,
    state_spec,
)
from kohort.spark.program.operations import LEFT, RIGHT, SIDE
from kohort.spark.program.processor_specs import Process, StateKind
from kohort.spark.program.selections import Changelog
from kohort.spark.program.shortcuts import quoted
from kohort.spark.program.table_joins import JoinColumns, JoinedFlow
from kohort.spark.program.table_operations import (
    COUNTER,
    FOREIGN,
    FOUND,
    GIVEN,
    NUMBER,
    SUBSCRIBERS,
    ForeignKeyAnswers,
    ForeignKeyResults,
    ForeignKeySubscriptions,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_LEFT_KEY = "left_key"


@dataclass(frozen=True)
class CompiledForeignKeyJoin:
    """A join by foreign key: three steps, and the two topics between them.

    Attributes:
        subscriptions: over left upserts.
        answers: over the topic with the columns `asked`, keyed by the right table's key.
        results: over the topic with the columns `answered`, keyed by the left table's.
        to_answers: what goes into the first topic of the first step's rows, and of right upserts.
        to_results: what goes into the second of the first step's rows, and of the second's.
    """

    subscriptions: Process
    answers: Process
    results: Process
    asked: StructType
    answered: StructType
    to_answers: tuple[JoinSide, JoinSide]
    to_results: tuple[JoinSide, JoinSide]


def foreign_key_join(
    where: str,
    how: str,
    name: str,
    columns: JoinColumns,
    sides: tuple[JoinedFlow, JoinedFlow],
    routed_by: tuple[str, ...],
    changelog: Changelog,
) -> CompiledForeignKeyJoin:
    """The join of a left table, by columns of it, with the table whose key these are.

    Args:
        where: how messages call it.
        name: of the join, with which the names of its stores begin.
        routed_by: what the left table's records are keyed by.

    Raises:
        ProgramError: they can't be joined.
    """
    from pyspark.sql.types import BooleanType, LongType, StructField, StructType

    key = sides[0].key
    assert key is not None
    by_name = {each.name: each for each in columns.left}
    keys = [by_name[each] for each in key]
    others = [each for each in columns.left if each.name not in key]
    foreign = [by_name[each] for each in columns.on]
    added = [each for _, each in columns.added]
    left, right = numbered(LEFT, others), numbered(RIGHT, added)
    left_keys, right_keys = numbered(_LEFT_KEY, keys), [sides[1].schema[each] for each in columns.key]
    side, deleted = marks()
    number, found = StructField(NUMBER, LongType()), StructField(FOUND, BooleanType())
    given = StructField(GIVEN, BooleanType())

    rows = StructType([*columns.left, deleted])
    sorted_rows = StructType([*columns.left, number, side, deleted])
    subscriptions = Process(
        f"{name}-subscriptions", group_types(where, key, rows), rows, sorted_rows,
        ForeignKeySubscriptions(key, columns.on),
        (
            state_spec(name, FOREIGN, changelog, StateKind.VALUE, numbered(FOREIGN, foreign)),
            state_spec(name, COUNTER, changelog, StateKind.VALUE, [number]),
        ),
        routed_by,
    )  # fmt: skip
    asked = StructType([*right_keys, side, deleted, *left_keys, number, *right])
    answers = Process(
        f"{name}-answers", group_types(where, columns.key, asked), asked,
        StructType([*left_keys, number, *map(nullable, right), found]), ForeignKeyAnswers(columns.key),
        (
            state_spec(name, RIGHT, changelog, StateKind.VALUE, right, shown=result_names(right, added)),
            state_spec(name, SUBSCRIBERS, changelog, StateKind.MAP, [*left_keys, number], left_keys),
        ),
        columns.key,
    )  # fmt: skip
    answered = StructType([*keys, side, deleted, number, *left, *right, found])
    own = dict(zip(field_names(others), field_names(left), strict=True))
    results = Process(
        f"{name}-results", group_types(where, key, answered), answered,
        StructType([*keys, *map(nullable, others), *added, deleted]),
        ForeignKeyResults(
            key, tuple(own[each] for each in columns.on if each in own), field_names(left), field_names(right), how
        ),
        (state_spec(name, LEFT, changelog, StateKind.VALUE, [*left, number, given], shown=result_names(left, others)),),
        key,
    )  # fmt: skip

    keyed = dict(zip(field_names(left_keys), key, strict=True))
    subscribed = dict(zip(columns.key, columns.on, strict=True)) | keyed | {NUMBER: NUMBER}
    theirs = {each: each for each in columns.key}
    theirs |= dict(zip(field_names(right), [each for each, _ in columns.added], strict=True))
    numbered_rows = {each: each for each in (*key, NUMBER)} | {mine: each for each, mine in own.items()}
    settled = dict(zip(key, field_names(left_keys), strict=True))
    settled |= {each: each for each in (NUMBER, *field_names(right), FOUND)}
    event_times = [each.event_time for each in sides]
    return CompiledForeignKeyJoin(
        subscriptions, answers, results, asked, answered,
        (_chosen(asked, subscribed, 1, 0), side_rows(asked, theirs, side=1, event_time=event_times[1])),
        (_chosen(answered, numbered_rows, 0, 0), side_rows(answered, settled, side=1, table=False)),
    )  # fmt: skip


def _chosen(union: StructType, names: Mapping[str, str], chosen: int, side: int) -> JoinSide:
    """Those rows of the first step's that have the side `chosen`, on their way into a topic."""
    into = side_rows(union, names, side=side)

    def rows(given: DataFrame) -> DataFrame:
        return into.rows(given.where(quoted(SIDE) == chosen))

    return JoinSide(rows, None)
