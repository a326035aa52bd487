"""Joins as of the rows' event times, beside a model that keeps all versions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark.jobs.processors.as_of_join import AsOfJoinProcessor
from kohort.spark.program.internal_columns import DELETED
from kohort.spark.program.operations import CLOCK, SIDE
from kohort.spark.program.table_operations import PENDING, SINCE, VERSIONS, AsOfJoin

from .one_task import OneTask, cut

SCHEMA = pa.schema(
    [("k", pa.string()), ("n", pa.int64()), (SIDE, pa.int32()), ("_right0", pa.int64()), (DELETED, pa.bool_())]
)
OUTPUT = pa.schema([("k", pa.string()), ("n", pa.int64()), ("rate", pa.int64())])


def a_task(how: str, history: int, grace: int) -> OneTask:
    since = pa.schema([(SINCE, pa.int64())])
    states = {
        CLOCK: pa.schema([("table", pa.int64()), ("stream", pa.int64())]),
        VERSIONS: (pa.schema([*since, ("_right0", pa.int64()), (DELETED, pa.bool_())]), since),
        PENDING: pa.schema([("k", pa.string()), ("n", pa.int64()), ("_time", pa.int64())]),
    }
    return OneTask(
        AsOfJoinProcessor(AsOfJoin(("k",), ("k", "n"), ("_right0",), how, history, grace), OUTPUT),
        SCHEMA,
        ["k"],
        states,
    )


def row(key: str | None, time: int | None, number: int) -> dict[str, Any]:
    return {"k": key, "n": number, SIDE: 0, "_time": time}


def version(key: str | None, time: int | None, number: int | None) -> dict[str, Any]:
    return {"k": key, SIDE: 1, "_right0": number, DELETED: number is None, "_time": time}


class Model:
    """All versions, and rows that wait, with how far time has come."""

    def __init__(self, how: str, history: int, grace: int) -> None:
        self.how, self.history, self.grace = how, history, grace
        self.versions: dict[str, dict[int, int | None]] = {}
        self.waiting: list[dict[str, Any]] = []
        self.table = self.stream = -1_000_000
        self.given: Counter[tuple[Any, ...]] = Counter()
        self.late = 0

    def epoch(self, rows: list[dict[str, Any]]) -> None:
        before = self.table - self.history
        horizons = []
        for each in rows:
            if each["_time"] is not None and each[SIDE] == 0:
                self.stream = max(self.stream, each["_time"])
            elif each["_time"] is not None and each["k"] is not None:
                self.table = max(self.table, each["_time"])
                if each["_time"] < self.table - self.history:
                    self.late += 1
                else:
                    self.versions.setdefault(each["k"], {})[each["_time"]] = each["_right0"]
            horizons.append(self.table - self.history)
        waited = self.waiting
        self.waiting = []
        for each in waited:
            self.ask(each, before)
        for each, horizon in zip(rows, horizons, strict=True):
            if each[SIDE] == 0:
                self.ask(each, horizon)

    def ask(self, each: dict[str, Any], horizon: int) -> None:
        key, time = each["k"], each["_time"]
        found = None
        if time is not None and key is not None and time + self.grace > self.stream:
            self.waiting.append(each)
            return
        if time is not None and time < horizon:
            self.late += 1
        elif time is not None and key is not None:
            known = self.versions.get(key, {})
            found = (
                known[max(since for since in known if since <= time)] if min(known, default=time + 1) <= time else None
            )
        if found is not None or self.how == "left":
            self.given[key, each["n"], found, time] += 1


@settings(max_examples=200, deadline=None)
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
        max_size=25,
    ),
    st.lists(st.integers(0, 5), max_size=6),
)
def test_rows_meet_the_version_that_was_valid_at_their_time(
    how: str, history: int, grace: int, drawn: list[tuple[str, str | None, int | None]], sizes: list[int]
) -> None:
    rows = [
        row(key, time, number) if what == "row" else version(key, time, number if what == "version" else None)
        for number, (what, key, time) in enumerate(drawn)
    ]
    task, model = a_task(how, history, grace), Model(how, history, grace)
    found: Counter[tuple[Any, ...]] = Counter()
    for part in cut(rows, sizes):
        found.update((each["k"], each["n"], each["rate"], each["_time"]) for each in task.epoch(part))
        model.epoch(list(part))
    assert (found, task.late) == (model.given, model.late)
    assert len(task.stores[PENDING].rows) == len(model.waiting)


def test_versions_that_were_over_before_the_history_are_forgotten() -> None:
    task = a_task("inner", 10, 0)
    for time in range(0, 100, 5):
        task.epoch([version("x", time, time)])
        assert len(task.stores[VERSIONS].rows) <= 3
    assert [each["rate"] for each in task.epoch([row("x", 86, 1), row("x", 200, 2), row("x", 84, 3)])] == [85, 95]
    assert task.late == 1
    task.epoch([version("x", 100, None), version("x", 150, 1), version("x", 160, None)])
    task.epoch([version("y", 200, 1), version("x", 200, None)])
    task.epoch([version("x", 300, None), version("y", 300, 2)])
    assert [b'"x"' in key for key in task.stores[VERSIONS].rows].count(True) == 1  # the last deletion
