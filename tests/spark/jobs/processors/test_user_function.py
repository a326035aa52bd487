"""Functions of users: what they are told when they do what can't be, and what timers do."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from kohort.spark.jobs.arrow_key_encoding import group_keys
from kohort.spark.jobs.errors import ProcessorError
from kohort.spark.jobs.processors.interface import Made, Rows, TaskState
from kohort.spark.jobs.processors.states import State
from kohort.spark.jobs.processors.user_function import UserFunctionProcessor
from kohort.spark.program.operations import TIMERS

from .stores import DictStore

GROUP = pa.schema([("k", pa.string())])
OUTPUT = pa.schema([("k", pa.string()), ("n", pa.int64())])
TIME = pa.timestamp("us", "UTC")


class Called:
    """A function, called epoch by epoch, with a list, a value, and timers."""

    def __init__(self, function: Callable[[pa.Table, Any], Any], *, timers: bool = True) -> None:
        self._processor = UserFunctionProcessor("mine", function, {"log": "list", "n": "value"}, GROUP, OUTPUT)
        self.stores = {name: DictStore() for name in ("log", "n", *([TIMERS] if timers else []))}
        kinds = {
            "log": pa.schema([("n", pa.int64())]),
            "n": pa.schema([("n", pa.int64())]),
            TIMERS: pa.schema([*GROUP, ("at", TIME), ("name", pa.string())]),
        }
        self._states = {name: State(name, kinds[name], store) for name, store in self.stores.items()}
        self._offset = 0

    def epoch(self, now: int, *keys: str) -> Made:
        table = pa.table({"k": list(keys)})
        times = pa.array([now] * len(keys), pa.int64())
        offsets = pa.array(range(self._offset, self._offset + len(keys)), pa.int64())
        self._offset += len(keys)
        rows = Rows(table, group_keys(["k"], [table["k"].combine_chunks()]), times, times, offsets)
        made = self._processor.process(rows, TaskState(0, now, self._states))
        for store in self.stores.values():
            store.commit()
        return made


def at(ms: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)


def table(key: str, **columns: Any) -> pa.Table:
    return pa.table({"k": [key], **{name: [value] for name, value in columns.items()}})


WRONG: dict[str, tuple[Callable[[pa.Table, Any], Any], str]] = {
    "something else": (
        lambda rows, state: 5,
        "the function of processor 'mine' must return a pyarrow.Table or None, not",
    ),
    "other columns": (lambda rows, state: rows, "the columns must be k, n; n not among k"),
    "other types": (lambda rows, state: table("a", n="x"), "column 'n' is string, and must be int64: Failed to parse"),
    "a column twice": (
        lambda rows, state: pa.table([["a"], [1], [2]], names=["k", "n", "n"]),
        "column 'n' is there twice",
    ),
    "no such state": (lambda rows, state: state["m"], "there is no state 'm'; there are log, n"),
    "no group": (
        lambda rows, state: state["n"].put(pa.table({"n": [1]})),
        "n.put: the columns must be k; k not among n",
    ),
    "no table": (lambda rows, state: state["n"].put({"k": 1}), "n.put: it takes a pyarrow.Table, not dict"),
    "a list that is added to twice": (
        lambda rows, state: [state["log"].append(table("a", n=1)) for _ in range(2)],
        "log.append is called again in one call",
    ),
    "a timer at no time": (
        lambda rows, state: state.timers.set(pa.table({"k": ["a"], "at": pa.nulls(1, TIME)})),
        "a timer's `at` is null",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_function_may_not_do(name: str) -> None:
    function, told = WRONG[name]
    with pytest.raises(ProcessorError, match=told):
        Called(function).epoch(0, "a")


def test_errors_say_where_the_function_is_written() -> None:
    with pytest.raises(
        ProcessorError, match=r"columns must be k, n; n not among k \(.*test_user_function.py, line \d+\)"
    ):
        Called(lambda rows, state: rows).epoch(0, "a")


def test_timers_that_the_program_does_not_know_of() -> None:
    with pytest.raises(ProcessorError, match=r"by event time .* say process\(…, timers=\"event\"\)"):
        Called(lambda rows, state: state.timers, timers=False).epoch(0, "a")


def test_timers_are_due_once_when_stream_time_has_reached_them() -> None:
    due: list[list[tuple[str, int, str]]] = []

    def function(rows: pa.Table, state: Any) -> None:
        due.append(
            [(row["k"], round(row["at"].timestamp() * 1000), row["name"]) for row in state.timers.due.to_pylist()]
        )
        if len(due) == 1:
            state.timers.set(table("a", at=at(1_000)))
            state.timers.set(table("a", at=at(1_000), name="other"))
            state.timers.set(table("b", at=at(2_000)))
            state.timers.set(table("c", at=at(2_000)))
        if len(due) == 2:
            state.timers.delete(table("c", at=at(2_000)))

    called = Called(function)
    for now in (0, 999, 1_000, 5_000, 6_000):
        called.epoch(now, "z")
    assert due == [[], [], [("a", 1_000, ""), ("a", 1_000, "other")], [("b", 2_000, "")], []]
    assert called.stores[TIMERS].rows == {}


def test_no_timers_may_be_set_or_taken_out() -> None:
    """As a function does that a timer calls without rows, and that sets one for each row."""
    none = table("a", at=at(1_000)).slice(0, 0)

    def function(rows: pa.Table, state: Any) -> None:
        state.timers.set(none)
        state.timers.delete(none)

    called = Called(function)
    called.epoch(0, "a")
    assert called.stores[TIMERS].rows == {}


def test_groups_are_those_of_rows_and_of_timers() -> None:
    groups: list[list[str]] = []

    def function(rows: pa.Table, state: Any) -> None:
        groups.append(state.groups["k"].to_pylist())
        if len(groups) == 1:
            state.timers.set(table("b", at=at(10)))

    called = Called(function)
    called.epoch(0, "b", "a", "b")
    called.epoch(20, "c")
    assert groups == [["b", "a"], ["c", "b"]]


SEVERAL: dict[str, tuple[Any, str]] = {
    "no dict": (pa.table({"k": ["a"]}), r"must return a dict of tables, by the names of its outputs \(one, two\)"),
    "another output": ({"three": pa.table({"k": ["a"]})}, "returns an output 'three'; there are: one, two"),
    "no table": ({"two": 5}, "must return a pyarrow.Table or None for the output 'two', not int"),
    "other columns": ({"one": pa.table({"n": [1]})}, "for the output 'one': the columns must be k; k not among n"),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_what_a_function_of_several_outputs_may_not_give(name: str) -> None:
    given, told = SEVERAL[name]
    with pytest.raises(ProcessorError, match=told):
        _several(given)


def test_several_outputs_are_beside_each_other() -> None:
    made = _several({"two": pa.table({"n": [1]}), "one": pa.table({"k": ["a", "b"]})})
    assert made.rows.to_pylist() == [
        {"_output": 0, "_0_0": "a", "_1_0": None},
        {"_output": 0, "_0_0": "b", "_1_0": None},
        {"_output": 1, "_0_0": None, "_1_0": 1},
    ]
    assert _several(None).rows.num_rows == 0


def _several(given: Any) -> Made:
    outputs = (("one", GROUP), ("two", pa.schema([("n", pa.int64())])))
    output = pa.schema([("_output", pa.int32()), ("_0_0", pa.string()), ("_1_0", pa.int64())])
    processor = UserFunctionProcessor("mine", lambda rows, state: given, {}, GROUP, output, outputs=outputs)
    none = pa.array([0], pa.int64())
    return processor.process(
        Rows(pa.table({"k": ["a"]}), pa.array(['{"k":"a"}']), none, none, none), TaskState(0, 0, {})
    )
