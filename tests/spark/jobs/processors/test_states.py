from __future__ import annotations

import datetime
import json
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark.jobs.processors.states import State, at_time
from kohort.spark.jobs.state_encoding import list_texts, lists_of, object_texts, objects_of

from .stores import DictStore

UTC = datetime.UTC
KINDS = pa.schema(
    [
        pa.field("n", pa.int64()),
        pa.field("small", pa.int16()),
        pa.field("text", pa.string()),
        pa.field("yes", pa.bool_()),
        pa.field("real", pa.float64()),
        pa.field("price", pa.decimal128(12, 2)),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("raw", pa.binary()),
        pa.field("several", pa.list_(pa.field("element", pa.int64()))),
        pa.field("pair", pa.struct([pa.field("a", pa.string()), pa.field("b", pa.float64())])),
    ]
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=5)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(-(2**63), 2**63 - 1),
            "small": st.none() | st.integers(-(2**15), 2**15 - 1),
            "text": st.none() | TEXT,
            "yes": st.none() | st.booleans(),
            "real": st.none() | st.floats(allow_nan=False),
            "price": st.none() | st.decimals(-(10**9), 10**9, places=2),
            "day": st.none() | st.dates(),
            "at": st.none() | st.datetimes(min_value=datetime.datetime(1, 1, 2), timezones=st.just(UTC)),
            "raw": st.none() | st.binary(max_size=5),
            "several": st.none() | st.lists(st.none() | st.integers(-5, 5), max_size=3),
            "pair": st.none()
            | st.fixed_dictionaries({"a": st.none() | TEXT, "b": st.none() | st.floats(allow_nan=False, width=32)}),
        }
    ),
    max_size=6,
)


@settings(max_examples=200)
@given(ROWS)
def test_rows_come_back_as_they_were(rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(rows, KINDS)
    texts = object_texts(table)
    assert all(isinstance(json.loads(text), dict) for text in texts.to_pylist())
    assert objects_of(texts, KINDS, "here").to_pylist() == table.to_pylist()


@settings(max_examples=50)
@given(ROWS, st.lists(st.integers(0, 3), min_size=1))
def test_lists_come_back_as_they_were(rows: list[dict[str, Any]], lengths: list[int]) -> None:
    table = pa.Table.from_pylist(rows, KINDS)
    ends: list[int] = []
    for length in lengths:
        ends.append(min((ends[-1] if ends else 0) + length, len(rows)))
    ends.append(len(rows))
    numbers, found = lists_of(list_texts(table, np.array(ends)), KINDS, "here")
    assert found.to_pylist() == table.to_pylist()
    starts = [0, *ends[:-1]]
    assert numbers.tolist() == [n for n, (a, b) in enumerate(zip(starts, ends, strict=True)) for _ in range(a, b)]


def state(store: DictStore, **more: Any) -> State:
    return State("seen", pa.schema([pa.field("n", pa.int64())]), store, **more)


def test_values_are_got_put_and_deleted() -> None:
    store = DictStore()
    seen = state(store)
    keys = pa.array(['{"k":1}', '{"k":2}', '{"k":3}'])
    seen.put(keys, pa.table({"n": [1, 2, 3]}))
    assert seen.get(keys).rows.num_rows == 0  # not before the epoch is over
    store.commit()
    seen.delete(keys.slice(1, 1))
    store.commit()
    found = seen.get(keys)
    assert found.groups.tolist() == [0, 2] and found.rows.to_pylist() == [{"n": 1}, {"n": 3}]
    assert store.rows[b'{"k":1}'] == b'{"n":1}'


def test_lists_grow_and_are_cleared() -> None:
    store = DictStore()
    seen = state(store)
    one, two = '{"k":1}', '{"k":10}'
    seen.append(pa.array([two, one, two]), pa.table({"n": [1, 2, 3]}), pa.array([99, 100, 101]))
    store.commit()
    seen.append(pa.array([two]), pa.table({"n": [4]}), pa.array([1000]))
    store.commit()
    found = seen.lists(pa.array([one, two, '{"k":2}']))
    assert found.groups.tolist() == [0, 1, 1, 1] and found.rows["n"].to_pylist() == [2, 1, 3, 4]
    seen.clear(pa.array([one]))
    store.commit()
    assert seen.lists(pa.array([one, two])).groups.tolist() == [1, 1, 1]


def test_long_lists_are_kept_in_pieces_that_records_have_room_for() -> None:
    store = DictStore()
    texts = State("log", pa.schema([pa.field("text", pa.string())]), store)
    values = [f"{number} {'x' * 1000}" for number in range(2000)]
    texts.append(pa.array(['{"k":1}'] * 2000), pa.table({"text": values}), pa.array([7] * 2000))
    store.commit()
    assert max(map(len, store.rows.values())) < 500_000
    assert texts.lists(pa.array(['{"k":1}'])).rows["text"].to_pylist() == values


def test_maps_have_entries() -> None:
    store = DictStore()
    kinds = pa.schema([pa.field("item", pa.string()), pa.field("n", pa.int64())])
    seen = State("seen", kinds, store, map_key=pa.schema([pa.field("item", pa.string())]))
    groups = pa.array(['{"k":1}', '{"k":1}', '{"k":2}'])
    rows = pa.table({"item": ["a", 'b"', "a"], "n": [1, 2, 3]})
    keys = seen.entry_keys(groups, rows)
    assert keys.to_pylist() == ['{"k":1,"item":"a"}', '{"k":1,"item":"b\\""}', '{"k":2,"item":"a"}']
    seen.put(keys, rows)
    store.commit()
    assert seen.get(keys.slice(1, 1)).rows.to_pylist() == [{"item": 'b"', "n": 2}]
    found = seen.entries(pa.array(['{"k":2}', '{"k":1}']))
    assert found.groups.tolist() == [0, 1, 1]
    assert found.rows.to_pylist() == [{"item": "a", "n": 3}, {"item": "a", "n": 1}, {"item": 'b"', "n": 2}]


def test_keys_of_buckets_begin_with_their_time() -> None:
    seen = state(DictStore(), bucket_ms=10_000)
    keys = seen.bucketed(pa.array(['{"k":1}', '{"k":2}']), pa.array([12_345, -1]))
    assert keys.to_pylist() == [
        '{"window":"1970-01-01T00:00:10.000Z","k":1}',
        '{"window":"1969-12-31T23:59:50.000Z","k":2}',
    ]
    assert at_time(pa.array(['{"k":1}']), pa.array([1])).to_pylist() == ['{"window":"1970-01-01T00:00:00.001Z","k":1}']
