"""Partials and prior values are merged column by column, beside plain Python."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.jobs.drop_reasons import NO_KEY, NO_WINDOW
from kohort.spark.jobs.errors import AggregationError, StoredValueError
from kohort.spark.jobs.kll_sketches import sketches
from kohort.spark.jobs.stages import state_merge
from kohort.spark.jobs.stages.late_partials import CLOSED, LATE
from kohort.spark.jobs.stages.state_lookup import StateLookup
from kohort.spark.jobs.stages.state_merge import (
    Result,
    StateMerge,
    StoreKey,
    merged_records,
    partial_records,
    state_merge_stage,
)
from kohort.spark.program.aggregates.columnwise import Fold, Sketch
from kohort.spark.program.internal_columns import KEY, PARTITION, RECORDS, TIMESTAMP
from tests.spark.jobs.fakes import FakeRpc

KINDS = pa.schema([
    ("n", pa.int64()), ("total", pa.int64()), ("least", pa.int32()), ("worst", pa.float64()),
    ("mean.sum", pa.float64()), ("mean.count", pa.int64()),
])  # fmt: skip
ENCODED = pa.schema([
    ("n", pa.int64()), ("total", pa.int64()), ("least", pa.int64()), ("worst", pa.string()),
    ("mean.sum", pa.string()), ("mean.count", pa.int64()),
])  # fmt: skip
MERGE = StateMerge(
    StateLookup("s", ENCODED),
    None,
    KINDS,
    (Fold.COUNT, Fold.SUM, Fold.MIN, Fold.MAX, Fold.SUM, Fold.COUNT),
    (Result("n", 0), Result("total", 1), Result("least", 2), Result("worst", 3), Result("mean", 4, 5)),
    checked=True,
)
State = tuple[Any, ...]

whole = st.integers(-(2**40), 2**40)
number = st.one_of(st.floats(allow_nan=True), st.integers(-1000, 1000).map(float))
states = st.tuples(
    st.integers(0, 2**40), st.none() | whole, st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | number,
    st.none() | number, st.integers(0, 2**40),
)  # fmt: skip


def run(rpc: FakeRpc, partials: list[tuple[int | None, str, State]], merge: StateMerge = MERGE) -> list[dict[str, Any]]:
    rows = [(partition, 7, 2, key, *state) for partition, key, state in partials]
    return run_rows(rpc, rows, {KEY: pa.string()}, merge)


def run_rows(rpc: FakeRpc, rows: list[Any], key: dict[str, pa.DataType], merge: StateMerge) -> list[dict[str, Any]]:
    states = {f"_state{place}": kind for place, kind in enumerate(KINDS.types)}
    kinds = {PARTITION: pa.int32(), TIMESTAMP: pa.int64(), RECORDS: pa.int64(), **key, **states}
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds.values(), strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, names=list(kinds))
    return [row for made in state_merge_stage(rpc.context, merge)(iter([batch])) for row in made.to_pylist()]


def stored(state: State) -> bytes:
    """As Spark writes it."""
    shown = [{math.inf: "Infinity", -math.inf: "-Infinity"}.get(each, each) for each in state]
    n, total, least, worst, mean, count = ["NaN" if each != each else each for each in shown]
    texts = [None if each is None else str(each) for each in (worst, mean)]
    fields = [n, total, least, texts[0], texts[1], count]
    return json.dumps({"n": n, "state": dict(zip(ENCODED.names, fields, strict=True))}).encode()


def folded(one: State, other: State | None) -> State:
    if other is None:
        return one
    pairs = list(zip(one, other, strict=True))

    def some(place: int) -> list[Any]:
        return [each for each in pairs[place] if each is not None]

    worst = max(some(3), key=lambda each: (each != each, each), default=None)
    return (
        sum(some(0)), sum(some(1)) if some(1) else None, min(some(2), default=None), worst,
        sum(some(4)) if some(4) else None, sum(some(5)),
    )  # fmt: skip


def read_number(value: Any) -> float | None:
    return None if value is None else float(value)


def same(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and math.isnan(one) and math.isnan(other))


@given(st.lists(st.tuples(states, st.none() | states), min_size=1, max_size=8))
def test_each_key_is_merged_with_its_prior_value(pairs: list[tuple[State, State | None]]) -> None:
    rpc = FakeRpc({("s", 3): {}})
    for place, (_, prior) in enumerate(pairs):
        if prior is not None:
            rpc.stores["s", 3][b"%d" % place] = stored(prior)
    made = run(rpc, [(3, str(place), partial) for place, (partial, _) in enumerate(pairs)])
    assert [(row["key"], row["partition"], row[TIMESTAMP]) for row in made] == [
        (b"%d" % place, 3, 7) for place in range(len(pairs))
    ]
    for row, (partial, prior) in zip(made, pairs, strict=True):
        value = json.loads(row["value"])
        n, total, least, worst, mean_sum, mean_count = folded(partial, prior)
        assert (value["n"], value["total"], value["least"]) == (n, total, least)
        assert same(read_number(value["worst"]), worst)
        mean = mean_sum / mean_count if mean_sum is not None and mean_count > 0 else None
        assert same(read_number(value["mean"]), mean)
        state = value["state"]
        assert list(state) == ENCODED.names
        assert (state["n"], state["total"], state["least"], state["mean.count"]) == (n, total, least, mean_count)
        assert state["worst"] is None or isinstance(state["worst"], str)
        assert same(read_number(state["worst"]), worst) and same(read_number(state["mean.sum"]), mean_sum)


def test_a_value_is_read_again_as_it_was_written() -> None:
    rpc = FakeRpc({("s", 0): {}})
    state = (3, 4, -5, 1e300, 0.1, 3)
    for _ in range(2):
        (row,) = run(rpc, [(0, "k", state)])
        rpc.stores["s", 0][b"k"] = row["value"]
    assert row["value"] == (
        b'{"n":6,"total":8,"least":-5,"worst":1e+300,"mean":0.03333333333333333,"state":{"n":6,"total":8,'
        b'"least":-5,"worst":"1e+300","mean.sum":"0.2","mean.count":6}}'
    )


def test_doubles_stay_doubles_and_names_are_quoted() -> None:
    merge = StateMerge(MERGE.lookup, None, KINDS, MERGE.folds, (Result('a "b"', 4), Result("ü", 3)), checked=True)
    (row,) = run(FakeRpc(), [(0, "k", (1, 2, 3, 5.0, -0.0, 1))], merge)
    assert row["value"].startswith('{"a \\"b\\"":-0.0,"ü":5.0,"state":{'.encode())


def test_what_is_not_finite_is_quoted() -> None:
    (row,) = run(FakeRpc(), [(0, "k", (1, 2, 3, math.inf, math.nan, 1))])
    assert b'"worst":"Infinity","mean":"NaN","state"' in row["value"]


def test_partials_of_no_task_or_window_are_counted() -> None:
    state = (1, 1, 1, 1.0, 1.0, 1)
    rpc = FakeRpc()
    made = run(rpc, [(None, "a", state), (0, LATE, state), (0, NO_WINDOW, state), (0, "b", state)])
    assert [row["key"] for row in made] == [b"b"]
    read = rpc.reports["state lookup"]
    assert (read.late, read.reasons) == (2, {NO_KEY: 2, NO_WINDOW: 2})
    assert rpc.asked == [b"b"]


def test_a_sum_that_overflows_fails_or_wraps_as_in_spark() -> None:
    most = (1, 2**63 - 1, 1, 1.0, 1.0, 1)
    rpc = FakeRpc({("s", 0): {b"k": stored(most)}})
    with pytest.raises(AggregationError, match="'s': a sum is too large"):
        run(rpc, [(0, "k", most)])
    wrapping = StateMerge(MERGE.lookup, None, KINDS, MERGE.folds, MERGE.results, checked=False)
    assert json.loads(run(rpc, [(0, "k", most)], wrapping)[0]["value"])["total"] == -2


def test_keys_are_made_of_window_and_group() -> None:
    state = (1, 1, 1, 1.0, 1.0, 1)
    merge = dataclasses.replace(MERGE, key=StoreKey(("id", 'a "b"'), windowed=True))
    kinds = {"_window": pa.int64(), "_group0": pa.int64(), "_group1": pa.string()}
    starts = (1_356_998_400_000, -62_135_596_800_000, 1_356_998_400_001, CLOSED, None)
    rows = [
        (0, 7, 2, start, number, text, *state) for number, (start, text) in enumerate(zip(starts, 'x"yzz', strict=True))
    ]
    rpc = FakeRpc()
    made = run_rows(rpc, [*rows, (0, 7, 2, starts[0], None, None, *state)], kinds, merge)
    assert [row["key"].decode() for row in made] == [
        '{"window":"2013-01-01T00:00:00.000Z","id":0,"a \\"b\\"":"x"}',
        '{"window":"0001-01-01T00:00:00.000Z","id":1,"a \\"b\\"":"\\""}',
        '{"window":"2013-01-01T00:00:00.001Z","id":2,"a \\"b\\"":"y"}',
        '{"window":"2013-01-01T00:00:00.000Z","id":null,"a \\"b\\"":null}',
    ]
    read = rpc.reports["state lookup"]
    assert (read.late, read.reasons) == (2, {NO_WINDOW: 2})


def test_keys_are_made_of_a_group_without_window() -> None:
    merge = dataclasses.replace(MERGE, key=StoreKey(("id",), windowed=False))
    (row,) = run_rows(FakeRpc(), [(0, 7, 2, 5, 1, 1, 1, 1.0, 1.0, 1)], {"_group0": pa.int64()}, merge)
    assert row["key"] == b'{"id":5}'


LARGE = StateMerge(
    StateLookup("s", pa.schema([pa.field("p", pa.string())])),
    None,
    pa.schema([pa.field("p", pa.binary())]),
    (Sketch(1000, whole=True),),
    (Result("p", 0, quantiles=0.5),),
    checked=True,
)


def of_sketches(count: int) -> pa.RecordBatch:
    """Partials, each of one value: the number of its key."""
    numbers = np.arange(count)
    state = sketches(pa.array(numbers), numbers, count, 1000, 1)
    columns = [pa.array([0] * count, pa.int32()), pa.array(numbers), pa.array([1] * count), pa.array(map(str, numbers))]
    return pa.RecordBatch.from_arrays([*columns, state], names=[PARTITION, TIMESTAMP, RECORDS, KEY, "_state0"])


def test_the_larger_sketches_may_be_the_fewer_are_merged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column has no room for more than 2 GiB, and memory for less."""
    monkeypatch.setattr(state_merge, "_BYTES_AT_ONCE", 100_000)
    partials = of_sketches(10)
    for made in (list(merged_records(FakeRpc().context, LARGE, partials)), list(partial_records(LARGE, partials))):
        assert [batch.num_rows for batch in made] == [4, 4, 2]
        assert [key for batch in made for key in batch.column("key").to_pylist()] == [b"%d" % key for key in range(10)]
    monkeypatch.setattr(state_merge, "_BYTES_AT_ONCE", 1)
    assert [batch.num_rows for batch in partial_records(LARGE, partials)] == [1] * 10


def test_what_is_no_sketch_is_said_to_be_the_store_s() -> None:
    rpc = FakeRpc({("s", 0): {b"1": b'{"p":1,"state":{"p":"AAAA"}}'}})
    with pytest.raises(StoredValueError, match=r"store s: .*not a KLL sketch"):
        list(merged_records(rpc.context, LARGE, of_sketches(2)))
