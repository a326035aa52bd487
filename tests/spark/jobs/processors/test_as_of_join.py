"""Joins as of the rows' event times, beside a model that goes row by row and keeps all versions."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark.jobs.processors.as_of_join import AsOfJoinProcessor
from kohort.spark.jobs.processors.versions import ranges_of
from kohort.spark.program.internal_columns import DELETED
from kohort.spark.program.operations import CLOCK, OFFSET_COLUMN, SIDE, TIME_COLUMN
from kohort.spark.program.table_operations import ENDING, PENDING, SINCE, VERSIONS, AsOfJoin

from .one_task import OneTask, cut

_KEPT = pa.schema([(SINCE, pa.timestamp("us", "UTC"))])
_STREAM = [("k", pa.string()), ("n", pa.int64())]
SCHEMA = pa.schema([*_STREAM, (SIDE, pa.int32()), (SINCE, pa.int64()), ("rate", pa.int64()), (DELETED, pa.bool_())])
OUTPUT = pa.schema([*_STREAM, ("rate", pa.int64())])


def a_task(how: str, history: int, grace: int) -> OneTask:
    states = {
        CLOCK: pa.schema([("table", pa.int64()), ("stream", pa.int64())]),
        VERSIONS: (pa.schema([*_KEPT, ("rate", pa.int64()), (DELETED, pa.bool_())]), _KEPT),
        ENDING: pa.schema([]),
        PENDING: pa.schema([*_STREAM, (TIME_COLUMN, pa.int64()), (OFFSET_COLUMN, pa.int64())]),
    }
    join = AsOfJoin(("k",), ("k", "n"), ("rate",), how, history, grace)
    return OneTask(AsOfJoinProcessor(join, OUTPUT), SCHEMA, ["k"], states)


def row(key: str | None, time: int | None, number: int) -> dict[str, Any]:
    return {"k": key, "n": number, SIDE: 0, "_time": time}


def version(key: str | None, time: int | None, number: int | None) -> dict[str, Any]:
    return {"k": key, SIDE: 1, "rate": number, DELETED: number is None, SINCE: time, "_time": 0}


class Model:
    """All versions, rows that wait, and how far time has come."""

    def __init__(self, how: str, history: int, grace: int) -> None:
        self.how, self.history, self.grace = how, history, grace
        self.versions: dict[str, dict[int, int | None]] = {}
        self.waiting: list[dict[str, Any]] = []
        self.table = self.stream = -1_000_000
        self.given: list[tuple[Any, ...]] = []
        self.late = self.dropped = 0

    def take(self, each: dict[str, Any]) -> None:
        if each[SIDE] == 1:
            self.upsert(each["k"], each[SINCE], each["rate"])
            return
        time = each["_time"]
        self.stream = self.stream if time is None else max(self.stream, time)
        self.waiting.append(each)
        due = [
            each for each in self.waiting
            if each["k"] is None or each["_time"] is None or each["_time"] + self.grace <= self.stream
        ]  # fmt: skip
        for each in sorted(due, key=lambda row: -1_000_000 if row["_time"] is None else row["_time"]):
            self.waiting.remove(each)
            self.ask(each["k"], each["_time"], each["n"])

    def upsert(self, key: str | None, time: int | None, number: int | None) -> None:
        if key is None or time is None:
            self.dropped += 1
            return
        self.table = max(self.table, time)
        if time < self.horizon:
            self.late += 1
        else:
            self.versions.setdefault(key, {})[time] = number

    def ask(self, key: str | None, time: int | None, number: int) -> None:
        found = None
        if time is not None:
            known = {} if key is None else self.versions.get(key, {})
            before = [since for since in known if since <= time]
            if before and (time >= self.horizon or max(before) == max(known)):
                found = known[max(before)]
            self.late += found is None and time < self.horizon
        if found is not None or self.how == "left":
            self.given.append((key, number, found))

    @property
    def horizon(self) -> int:
        return min(self.table, self.stream) - self.history

    @property
    def kept(self) -> set[tuple[str, int]]:
        """The versions that may be asked for from now on."""
        kept = set()
        for key, known in self.versions.items():
            at_horizon = max((since for since in known if since <= self.horizon), default=None)
            kept |= {(key, since) for since in known if since > self.horizon}
            if at_horizon is not None and known[at_horizon] is not None:
                kept.add((key, at_horizon))
        return kept


def kept_by(task: OneTask) -> set[tuple[str, int]]:
    keys = map(json.loads, task.stores[VERSIONS].rows)
    return {(key["k"], round(datetime.fromisoformat(key[SINCE]).timestamp() * 1000)) for key in keys}


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["inner", "left"]),
    st.integers(0, 20),
    st.integers(0, 10),
    st.lists(
        st.tuples(
            st.sampled_from(["row", "row", "version", "version", "deletion"]),
            st.sampled_from(["x", "y", "x", "y", None]),
            st.none() | st.integers(0, 40),
        ),
        max_size=30,
    ),
    st.lists(st.integers(0, 5), max_size=8),
    st.sampled_from([0, 1, 100]),
)
def test_rows_meet_the_version_that_was_valid_at_their_time(
    how: str, history: int, grace: int, drawn: list[tuple[str, str | None, int | None]], sizes: list[int], partings: int
) -> None:
    """However many ranges of a key's times are read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kohort.spark.jobs.processors.versions._PARTINGS", partings)
        compared_with_the_model(how, history, grace, drawn, sizes)


def compared_with_the_model(
    how: str, history: int, grace: int, drawn: list[tuple[str, str | None, int | None]], sizes: list[int]
) -> None:
    task, model = a_task(how, history, grace), Model(how, history, grace)
    rows = [
        row(key, time, number) if what == "row" else version(key, time, number if what == "version" else None)
        for number, (what, key, time) in enumerate(drawn)
    ]
    found = []
    for part in cut(rows, sizes):
        found += [(each["k"], each["n"], each["rate"]) for each in task.epoch(part)]
        for each in part:
            model.take(each)
        assert kept_by(task) == model.kept
    assert (found, task.late, task.dropped) == (model.given, model.late, model.dropped)
    assert len(task.stores[PENDING].rows) == len(model.waiting)
    assert len(task.stores[ENDING].rows) <= len(model.kept)


def test_rows_have_their_own_times_and_come_for_windows_when_they_are_due() -> None:
    task = a_task("inner", 100, 10)
    task.epoch([version("x", 0, 1), row("x", 5, 1), row("x", 12, 2)])
    found = task.epoch([row("x", 90, 3)])
    assert [(each["n"], each["_time"], each["_stream_time"]) for each in found] == [(1, 5, 15), (2, 12, 22)]


def test_another_grace_lets_rows_go_that_have_waited_for_the_one_before() -> None:
    before, after = a_task("inner", 100, 10), a_task("inner", 100, 50)
    before.epoch([version("x", 0, 1), row("x", 5, 1)])
    after.stores = before.stores
    assert [each["n"] for each in after.epoch([row("x", 16, 2)])] == [1]
    assert [each["n"] for each in after.epoch([row("x", 70, 3)])] == [2]


def test_another_grace_changes_nothing_of_when_rows_that_wait_are_due() -> None:
    before, after = a_task("inner", 100, 50), a_task("inner", 100, 10)
    before.epoch([version("x", 0, 1), row("x", 5, 1)])
    after.stores = before.stores
    found = after.epoch([row("x", 54, 2), version("x", 4, 9), row("x", 90, 3)])
    assert [(each["n"], each["rate"], each["_stream_time"]) for each in found] == [(1, 9, 55), (2, 9, 64)]


def rates_and_orders() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A version and a row soon after it at each of many times, further apart in all than any history here."""
    times = range(0, 1000, 10)
    return [version("x", time, time) for time in times], [row("x", time + 5, time) for time in times]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_table_that_is_read_far_ahead_keeps_what_the_stream_will_ask_for(size: int) -> None:
    task, (rates, orders) = a_task("left", 20, 0), rates_and_orders()
    found = [each for part in cut([*rates, *orders], [size] * 200) for each in task.epoch(part)]
    assert [(each["n"], each["rate"]) for each in found] == [(time, time) for time in range(0, 1000, 10)]
    assert task.late == 0
    assert kept_by(task) == {("x", 970), ("x", 980), ("x", 990)}


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_stream_that_is_read_far_ahead_makes_no_version_late(size: int) -> None:
    task, (rates, orders) = a_task("left", 20, 0), rates_and_orders()
    for part in cut([*orders, *rates], [size] * 200):
        task.epoch(part)
    assert task.late == 0
    found = task.epoch([row("x", 996, 1), row("x", 975, 2), row("x", 965, 3)])
    assert [(each["n"], each["rate"]) for each in found] == [(1, 990), (2, 970), (3, None)]


def test_what_is_older_than_the_history_meets_the_last_version_alone() -> None:
    task = a_task("inner", 10, 0)
    task.epoch([version("x", 0, 1), version("x", 5, 2), version("y", 20, 9), row(None, 20, 0)])
    found = task.epoch([row("x", 4, 1), row("x", 6, 2)])
    assert ([(each["n"], each["rate"]) for each in found], task.late) == ([(2, 2)], 1)


def test_a_version_that_another_one_came_before_afterwards_still_ends_it() -> None:
    task = a_task("inner", 10, 0)
    for each in (version("x", 8, 2), version("x", 3, 1), version("y", 30, 9), row(None, 30, 0)):
        task.epoch([each])
    assert kept_by(task) == {("x", 8), ("y", 30)}


def reading(task: OneTask, rows: list[dict[str, Any]]) -> tuple[int, list[int | None]]:
    """How many versions an epoch of these rows reads, and which it finds."""
    before = task.stores[VERSIONS].read
    found = [each["rate"] for each in task.epoch(rows)]
    return task.stores[VERSIONS].read - before, found


@pytest.mark.parametrize("versions", [10, 1_000])
def test_what_is_read_of_versions_grows_with_what_is_asked_for_alone(versions: int) -> None:
    task = a_task("left", 1_000_000, 0)
    task.epoch([version("x", 10 * number, number) for number in range(versions)])
    last = 10 * versions
    read, found = reading(task, [row("x", last, 1)])
    assert (read, found) == (1, [versions - 1])
    read, _ = reading(task, [version("x", last, versions)])
    assert read == 1
    read, found = reading(task, [row("x", 15, 2), row("x", last + 5, 3), row("x", last + 7, 4), row("x", -5, 5)])
    assert (read, found) == (5, [1, versions, versions, None])  # around 15, from the last on, and the first
    read, found = reading(task, [version("x", 55, 99), row("x", 57, 6)])
    assert (read, found) == (2 + 2, [99])


def test_what_is_read_when_versions_end_is_what_is_taken_out_and_what_is_valid_then() -> None:
    task = a_task("left", 100, 0)
    task.epoch([version("x", 10 * number, number) for number in range(1_000)])
    task.epoch([row("x", 600, 1)])
    read, found = reading(task, [row("y", 650, 2)])
    assert found == [None]
    assert read == 5 + 1 + 1  # that ended, the valid one, and the next
    assert min(kept_by(task)) == ("x", 550)


def test_times_are_parted_into_few_ranges_where_they_are_furthest_apart() -> None:
    times = np.array([5, 0, 100, 101, 7, 5, 90, 3])
    groups = np.array([1, 1, 1, 1, 1, 1, 1, 0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kohort.spark.jobs.processors.versions._PARTINGS", 2)
        parted = ranges_of(groups, times, 1_000)
    assert list(zip(*(each.tolist() for each in parted), strict=True)) == [
        (0, 3, 3),
        (1, 0, 7),
        (1, 90, 90),
        (1, 100, 101),
    ]


def test_many_times_are_parted_only_where_they_are_far_apart() -> None:
    """Beside the history, which many ranges read a small part of then; or beside how far apart the others are."""
    day = 86_400_000
    groups, near = np.zeros(1_001, np.int64), np.arange(1_001) * 1_000

    def count(times: np.ndarray[tuple[int], np.dtype[np.int64]], history: int) -> int:
        return len(ranges_of(groups[: len(times)], times, history).groups)

    assert count(near, day) == 1
    assert count(near * 60, day) == 1_001
    assert count(near * 60, 365 * day) == 1
    apart = near.copy()
    apart[:500] -= day
    assert count(apart, day) == count(apart, 365 * day) == 2
    assert count(near[:10], 365 * day) == 10


def test_versions_of_neighbouring_times_are_read_once() -> None:
    task = a_task("left", 1_000_000, 0)
    task.epoch([version("x", 10 * number, number) for number in range(2_000)])
    read, found = reading(task, [row("x", 10 * number + 5, number) for number in range(500, 1_501)])
    assert (read, found) == (1_001 + 1, list(range(500, 1_501)))
