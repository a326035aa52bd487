"""Joins of tables beside a model that goes upsert by upsert."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark.jobs.processors.table_join import TableJoinProcessor
from kohort.spark.program.internal_columns import DELETED
from kohort.spark.program.operations import LEFT, RIGHT, SIDE
from kohort.spark.program.table_operations import TableJoin

from .one_task import OneTask, cut

SCHEMA = pa.schema(
    [("k", pa.string()), (SIDE, pa.int32()), ("_left0", pa.int64()), ("_right0", pa.int64()), (DELETED, pa.bool_())]
)
OUTPUT = pa.schema([("k", pa.string()), ("a", pa.int64()), ("b", pa.int64()), (DELETED, pa.bool_())])

upserts = st.lists(st.tuples(st.integers(0, 1), st.sampled_from(["x", "y", None]), st.booleans()), max_size=25)


def a_task(how: str) -> OneTask:
    processor = TableJoinProcessor(TableJoin(("k",), ("_left0",), ("_right0",), how), OUTPUT)
    states = {name: pa.schema([(f"_{name}0", pa.int64())]) for name in (LEFT, RIGHT)}
    return OneTask(processor, SCHEMA, ["k"], states)


def upsert(side: int, key: str | None, number: int | None) -> dict[str, Any]:
    """Without a number, a deletion."""
    return {"k": key, SIDE: side, f"_{(LEFT, RIGHT)[side]}0": number, DELETED: number is None, "_time": number}


def modelled(how: str, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What each row is answered with: (key, left, right, deleted)."""
    sides: tuple[dict[str, int], dict[str, int]] = {}, {}
    answers = []

    def result(key: str) -> tuple[int | None, int | None] | None:
        left, right = sides[0].get(key), sides[1].get(key)
        there = {"inner": left is not None and right is not None, "left": left is not None}
        return (left, right) if there.get(how, left is not None or right is not None) else None

    for row in rows:
        key = row["k"]
        if key is None:
            continue
        before = result(key)
        if row[DELETED]:
            sides[row[SIDE]].pop(key, None)
        else:
            sides[row[SIDE]][key] = row[f"_{(LEFT, RIGHT)[row[SIDE]]}0"]
        after = result(key)
        if after is not None:
            answers.append((key, *after, False))
        elif before is not None:
            answers.append((key, None, None, True))
    return answers


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["inner", "left", "outer"]), upserts, st.lists(st.integers(0, 5), max_size=6))
def test_each_upsert_is_answered_with_the_joined_row_as_it_is_then(
    how: str, drawn: list[tuple[int, str | None, bool]], sizes: list[int]
) -> None:
    rows = [upsert(side, key, None if gone else number) for number, (side, key, gone) in enumerate(drawn)]
    task = a_task(how)
    made = [row for part in cut(rows, sizes) for row in task.epoch(part)]
    assert [(row["k"], row["a"], row["b"], row[DELETED]) for row in made] == modelled(how, rows)
    assert task.dropped == sum(row["k"] is None for row in rows)


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
def test_nothing_is_kept_of_keys_that_are_gone(how: str) -> None:
    task = a_task(how)
    task.epoch([upsert(0, "x", 1), upsert(1, "x", 2)])
    assert [len(store.rows) for store in task.stores.values()] == [1, 1]
    task.epoch([upsert(0, "x", None), upsert(1, "x", None)])
    assert [len(store.rows) for store in task.stores.values()] == [0, 0]
