"""Joins of streams against a model that goes row by row and keeps everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark.jobs.arrow_key_encoding import group_keys
from kohort.spark.jobs.processors.interface import Rows, TaskState
from kohort.spark.jobs.processors.states import State
from kohort.spark.jobs.processors.stream_join import StreamJoinProcessor
from kohort.spark.program.operations import CLOCK, LEFT, RIGHT, SIDE, UNMATCHED, StreamJoin

from .stores import DictStore

OUTPUT = pa.schema([("k", pa.string()), ("a", pa.int64()), ("b", pa.int64())])
ROW = pa.schema([("k", pa.string()), (SIDE, pa.int32()), ("_left0", pa.int64()), ("_right0", pa.int64())])
OWN = [("_time", pa.int64()), ("_offset", pa.int64())]
BUCKET = 10


class Row(NamedTuple):
    side: int
    key: str | None
    time: int | None
    number: int


class Joined:
    """A join with its stores."""

    def __init__(self, join: StreamJoin) -> None:
        self._processor = StreamJoinProcessor(join, OUTPUT)
        self.stores = {name: DictStore() for name in (CLOCK, LEFT, RIGHT, UNMATCHED)}
        kinds = {
            CLOCK: pa.schema([(name, pa.int64()) for name in ("left", "right", "forgotten")]),
            LEFT: pa.schema([("k", pa.string()), ("_left0", pa.int64()), *OWN]),
            RIGHT: pa.schema([("k", pa.string()), ("_right0", pa.int64()), *OWN]),
            UNMATCHED: pa.schema([*OUTPUT, OWN[0]]),
        }
        buckets = {LEFT: BUCKET, RIGHT: BUCKET}
        self._states = {
            name: State(name, kinds[name], store, bucket_ms=buckets.get(name, 0)) for name, store in self.stores.items()
        }
        self.late = 0

    def epoch(self, rows: Sequence[Row], first: int) -> list[tuple[Any, ...]]:
        table = pa.Table.from_pylist(
            [
                {"k": each.key, SIDE: each.side, "_left0": None if each.side else each.number,
                 "_right0": each.number if each.side else None}
                for each in rows
            ],
            ROW,
        )  # fmt: skip
        times = pa.array([each.time for each in rows], pa.int64())
        given = Rows(
            table, group_keys(["k"], [table["k"].combine_chunks()]), times, times,
            pa.array([first + number for number in range(len(rows))], pa.int64()),
        )  # fmt: skip
        made = self._processor.process(given, TaskState(0, None, self._states))
        for store in self.stores.values():
            store.commit()
        self.late += made.late
        assert made.times is not None
        rows_made = [tuple(row.values()) for row in made.rows.to_pylist()]
        return [(*row, at) for row, at in zip(rows_made, made.times.to_pylist(), strict=True)]


def modelled(join: StreamJoin, rows: Sequence[Row]) -> tuple[Counter[tuple[Any, ...]], int]:
    """All that is given once all rows have been read, and how many came too late."""
    reached: list[int | None] = [None, None]
    taken: list[Row] = []
    found: Counter[tuple[Any, ...]] = Counter()
    matched: set[int] = set()
    late = 0

    def closes(row: Row) -> int:
        assert row.time is not None
        return row.time + (join.before_ms if row.side else join.after_ms) + join.grace_ms

    for row in rows:
        if row.time is None:
            late += 1
            continue
        before = reached[row.side]
        reached[row.side] = row.time if before is None else max(row.time, before)
        now = None if None in reached else min(each for each in reached if each is not None)
        if now is not None and closes(row) < now:
            late += 1
            continue
        for other in taken:
            left, right = (other, row) if row.side else (row, other)
            if other.side == row.side or other.key != row.key or row.key is None:
                continue
            assert left.time is not None and right.time is not None
            near = left.time - join.before_ms <= right.time <= left.time + join.after_ms
            if near and (now is None or closes(other) >= now):
                found[row.key, left.number, right.number, max(left.time, right.time)] += 1
                matched |= {left.number, right.number}
        taken.append(row)
    end = None if None in reached else min(each for each in reached if each is not None)
    for row in taken:
        over = row.key is None or (end is not None and closes(row) < end)
        if row.side in join.keeps and row.number not in matched and over:
            a, b = (None, row.number) if row.side else (row.number, None)
            found[row.key, a, b, row.time] += 1
    return found, late


def a_join(how: str, before: int, after: int, grace: int) -> StreamJoin:
    return StreamJoin(("k",), ("_left0",), ("_right0",), how, before, after, grace)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["inner", "left", "outer"]),
    st.integers(0, 12),
    st.integers(0, 12),
    st.integers(0, 15),
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from(["x", "y", None]), st.none() | st.integers(-20, 60)), max_size=25
    ),
    st.sets(st.integers(0, 25)),
)
def test_pairs_and_rows_without_a_match_are_given_once_however_epochs_are_cut(
    how: str, before: int, after: int, grace: int, drawn: list[tuple[int, str | None, int | None]], cuts: set[int]
) -> None:
    join = a_join(how, before, after, grace)
    rows = [Row(side, key, time, number) for number, (side, key, time) in enumerate(drawn)]
    joined = Joined(join)
    found: Counter[tuple[Any, ...]] = Counter()
    bounds = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    for start, end in pairwise(bounds):
        found.update(joined.epoch(rows[start:end], start))
    assert (found, joined.late) == modelled(join, rows)


@pytest.mark.parametrize("how", ["inner", "outer"])
def test_stores_are_empty_again_when_nothing_can_match_any_more(how: str) -> None:
    joined = Joined(a_join(how, 5, 5, 3))
    joined.epoch([Row(side, "x", time, 10 * side + time) for time in range(8) for side in (0, 1)], 0)
    assert joined.stores[LEFT].rows and joined.stores[RIGHT].rows
    joined.epoch([Row(0, "z", 1000, 100), Row(1, "z", 1000, 101)], 100)
    joined.epoch([Row(0, "z", 2000, 102), Row(1, "z", 2000, 103)], 102)
    for side in (LEFT, RIGHT):
        assert [key for key in joined.stores[side].rows if b"00:00:00" in key] == []
    assert joined.stores[UNMATCHED].rows == {}


def test_what_is_caught_up_with_in_large_epochs_is_not_kept() -> None:
    joined = Joined(a_join("inner", 5, 5, 0))
    for epoch in range(4):
        times = range(epoch * 1000, (epoch + 1) * 1000, 10)
        rows = [Row(side, "x", time, 2 * time + side) for time in times for side in (0, 1)]
        assert len(joined.epoch(rows, epoch * 1000)) == len(times)
        kept = sum(len(joined.stores[side].rows) for side in (LEFT, RIGHT))
        assert kept <= 8, epoch


def test_a_side_that_is_read_long_before_the_other_loses_nothing() -> None:
    """As when topics are read from their beginnings, one after the other."""
    joined = Joined(a_join("inner", 5, 5, 0))
    joined.epoch([Row(0, "x", time, time) for time in range(0, 100, 10)], 0)
    found = joined.epoch([Row(1, "x", time + 1, 1000 + time) for time in range(0, 100, 10)], 100)
    assert [(a, b) for _, a, b, _ in found] == [(time, 1000 + time) for time in range(0, 100, 10)]
    assert joined.late == 0
