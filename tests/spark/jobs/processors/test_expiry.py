"""State with a time to live, epoch by epoch, beside dictionaries that forget."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark.jobs.processors import expiry
from kohort.spark.jobs.processors.expiry import ExpiringState
from kohort.spark.jobs.processors.interface import Rows, TaskState
from kohort.spark.jobs.processors.states import State
from kohort.spark.jobs.processors.user_function import UserFunctionProcessor

from .stores import DictStore

TTL_MS = 100
COLUMNS = pa.schema([("n", pa.int64()), ("_written", pa.int64())])
STEPS = st.lists(
    st.tuples(
        st.integers(0, 60),  # ms that pass
        st.lists(st.sampled_from("abc"), unique=True, max_size=3),  # written
        st.lists(st.sampled_from("abc"), unique=True, max_size=1),  # deleted before that
    ),
    max_size=12,
)


def keys_of(*names: str) -> pa.Array:
    return pa.array([f'{{"k":"{name}"}}' for name in names], pa.string())


class Kept:
    """A state, and the index beside it."""

    def __init__(self, columns: pa.Schema = COLUMNS) -> None:
        self.store, self.index = DictStore(), DictStore()
        self._columns = columns

    def at(self, now: int | None, ttl_ms: int = TTL_MS) -> ExpiringState:
        index = State("index", pa.schema([]), self.index)
        return ExpiringState(State("kept", self._columns, self.store), index, ttl_ms, now)

    def commit(self) -> None:
        self.store.commit()
        self.index.commit()


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_values_are_those_of_a_dictionary_that_forgets(steps: list[tuple[int, list[str], list[str]]]) -> None:
    kept, model, now = Kept(), dict[str, tuple[int, int]](), 0
    for number, (passed, written, deleted) in enumerate(steps):
        now += passed
        state = kept.at(now)
        state.expire(1, lists=False)
        found = state.get(keys_of(*"abc"))
        alive = {key: n for key, (n, at) in model.items() if at + TTL_MS > now}
        assert dict(zip(("abc"[each] for each in found.groups), found.rows["n"].to_pylist(), strict=True)) == alive
        assert found.rows.column_names == ["n"]
        state.delete(keys_of(*deleted))
        state.put(keys_of(*written), pa.table({"n": pa.array([number] * len(written), pa.int64())}))
        kept.commit()
        for key in deleted:
            model.pop(key, None)
        model |= dict.fromkeys(written, (number, now))
        # What has expired is gone, and all that is there will be found when it does.
        assert {json.loads(key)["k"] for key in kept.store.rows} <= {
            key for key, (_, at) in model.items() if at + TTL_MS > now
        }
        assert {json.loads(key)["k"] for key in kept.store.rows} <= {json.loads(key)["k"] for key in kept.index.rows}
    last = kept.at(now + 2 * TTL_MS + 1)
    last.expire(1, lists=False)
    kept.commit()
    assert (kept.store.rows, kept.index.rows) == ({}, {})


def test_rows_of_lists_expire_each_for_itself() -> None:
    kept = Kept()
    for now in (0, 60, 120):
        state = kept.at(now)
        state.expire(1, lists=True)
        state.append(keys_of("a", "b"), pa.table({"n": [now, -now]}), pa.array([now, now]))
        kept.commit()
    found = kept.at(120).lists(keys_of("a"))
    assert found.rows["n"].to_pylist() == [60, 120] and len(kept.store.rows) == 4


def test_entries_of_maps_expire_each_for_itself() -> None:
    kept = Kept(pa.schema([("m", pa.string()), *COLUMNS]))
    for now, name in ((0, "x"), (60, "y")):
        state = kept.at(now)
        keys = pa.array([f'{{"k":"a","m":"{name}"}}'])
        state.put(keys, pa.table({"m": [name], "n": [now]}))
        kept.commit()
    assert kept.at(99).entries(keys_of("a")).rows["m"].to_pylist() == ["x", "y"]
    assert kept.at(100).entries(keys_of("a")).rows["m"].to_pylist() == ["y"]


def test_before_there_is_any_time_entries_are_kept() -> None:
    kept = Kept()
    kept.at(None).put(keys_of("a"), pa.table({"n": [1]}))
    kept.commit()
    state = kept.at(None)
    state.expire(1, lists=False)
    assert state.get(keys_of("a")).rows["n"].to_pylist() == [1]
    assert not len(kept.at(0).get(keys_of("a")).groups)


def test_another_time_to_live_goes_on_with_what_there_is() -> None:
    kept = Kept()
    kept.at(0).put(keys_of("a"), pa.table({"n": [1]}))
    kept.commit()
    longer = kept.at(150, 200)
    longer.expire(1, lists=False)
    assert longer.get(keys_of("a")).rows["n"].to_pylist() == [1]
    shorter = kept.at(150, 50)
    shorter.expire(1, lists=False)
    kept.commit()
    assert (kept.store.rows, kept.index.rows) == ({}, {})


def test_a_lot_that_expires_at_once_goes_over_several_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "_LEAST_BYTES", 1_000)
    kept, names = Kept(), [f"{number:04}" for number in range(100)]
    kept.at(0).put(keys_of(*names), pa.table({"n": list(range(100))}))
    kept.commit()
    left = []
    while kept.index.rows:
        state = kept.at(TTL_MS)
        state.expire(1, lists=False)
        kept.commit()
        left.append(len(kept.store.rows))
        assert not len(state.get(keys_of(*names)).groups)
    assert left == [*sorted(left, reverse=True)] and len(left) > 3 and left[-1] == 0


def test_more_is_taken_out_than_a_call_with_many_rows_of_a_group_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "_LEAST_BYTES", 1)
    group, kept, rows = pa.schema([("k", pa.string())]), Kept(), 100
    for number in range(rows):
        kept.at(0).append(keys_of("a"), pa.table({"n": [number]}), pa.array([number]))
    kept.commit()
    processor = UserFunctionProcessor("mine", lambda *_: None, {"n": "list"}, group, group, {"n": (TTL_MS, False)})
    states = {"n": State("n", COLUMNS, kept.store), "n-ttl": State("n-ttl", pa.schema([]), kept.index)}
    times, keys = pa.array([TTL_MS] * rows), pa.concat_arrays([keys_of("a")] * rows)
    given_rows = Rows(pa.table({"k": ["a"] * rows}), keys, times, times, pa.array(range(rows)))
    processor.process(given_rows, TaskState(0, TTL_MS, states))
    kept.commit()
    assert (kept.store.rows, kept.index.rows) == ({}, {})


def test_a_function_reads_what_has_not_expired() -> None:
    read: list[list[int]] = []

    def function(rows: pa.Table, state: Any) -> None:
        read.append(state["n"].get()["n"].to_pylist())
        state["n"].put(rows)

    call = _called(function)
    call(0, 1)
    call(99, 2)
    call(198, 3)
    call(298, 4)
    assert read == [[], [1], [2], []]


def _called(function: Callable[[pa.Table, Any], Any]) -> Callable[[int, int], None]:
    group, kept = pa.schema([("k", pa.string())]), Kept()
    processor = UserFunctionProcessor("mine", function, {"n": "value"}, group, group, {"n": (TTL_MS, False)})
    states = {"n": State("n", COLUMNS, kept.store), "n-ttl": State("n-ttl", pa.schema([]), kept.index)}

    def call(now: int, n: int) -> None:
        times = pa.array(np.array([now]))
        rows = Rows(pa.table({"k": ["a"], "n": [n]}), keys_of("a"), times, times, pa.array([0]))
        processor.process(rows, TaskState(0, now, states))
        kept.commit()

    return call


def test_what_was_written_without_a_time_to_live_expires_after_its_next_write() -> None:
    kept = Kept()
    State("kept", COLUMNS, kept.store).put(keys_of("a"), pa.table({"n": [1], "_written": pa.nulls(1, pa.int64())}))
    kept.commit()
    state = kept.at(1_000)
    assert state.get(keys_of("a")).rows["n"].to_pylist() == [1]
    state.put(keys_of("a"), pa.table({"n": [2]}))
    kept.commit()
    later = kept.at(1_000 + TTL_MS)
    later.expire(1, lists=False)
    kept.commit()
    assert (kept.store.rows, kept.index.rows) == ({}, {})
