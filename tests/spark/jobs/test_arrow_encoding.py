"""Encoded types in Arrow."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.jobs import arrow_encoding
from kohort.spark.jobs.arrow_encoding import decoded_array, read_objects
from kohort.spark.jobs.errors import StoredValueError

SCHEMA = pa.schema([pa.field("a", pa.int64()), pa.field("b.c", pa.string()), pa.field("d", pa.bool_())])
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "a": st.none() | st.integers(-(2**63), 2**63 - 1),
        "b.c": st.none() | st.text(st.characters(codec="utf-8"), max_size=20),
        "d": st.none() | st.booleans(),
        "more": st.lists(st.integers(0, 3), max_size=2),
    },
)


@given(st.lists(OBJECTS, max_size=6), st.booleans())
def test_objects_are_read_as_they_were_written(objects: list[dict[str, Any]], sliced: bool) -> None:
    texts = [json.dumps(each, ensure_ascii=False).encode() for each in objects]
    values = pa.array([b"{}", *texts], pa.binary())[1:] if sliced else pa.array(texts, pa.binary())
    read = read_objects(values, SCHEMA, "x")
    assert read.to_pylist() == [{name: each.get(name) for name in SCHEMA.names} for each in objects]


def test_many_bytes_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_encoding, "_MOST_AT_ONCE", 30)
    values = pa.array([b'{"a":%d}' % number for number in range(50)], pa.binary())
    assert read_objects(values, SCHEMA, "x").column("a").to_pylist() == list(range(50))


@pytest.mark.parametrize(
    "value", [b"", b"no", b'{"a":1}{"a":2}', b"[1]", b'{"a":"x"}', b'{"a":1', b'{"a":1}\n{"a":2}', None]
)
def test_what_isnt_an_object_is_refused_with_its_origin(value: bytes | None) -> None:
    with pytest.raises(StoredValueError, match="store s"):
        read_objects(pa.array([b'{"a":1}', value], pa.binary()), SCHEMA, "store s")


@pytest.mark.parametrize(
    ("encoded", "kind", "plain"),
    [
        (pa.array([1, None]), pa.int8(), [1, None]),
        (pa.array(["1.5", "NaN", "-Infinity", "1.0E10", None]), pa.float64(), [1.5, "nan", float("-inf"), 1e10, None]),
        (pa.array(["12.30", None]), pa.decimal128(10, 2), [Decimal("12.30"), None]),
        (pa.array([1_500_000, None]), pa.timestamp("us", "UTC"), [datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC), None]),
        (pa.array([1_500_000]), pa.timestamp("us"), [datetime(1970, 1, 1, 0, 0, 1, 500_000)]),
        (pa.array(["2013-01-02", None]), pa.date32(), [date(2013, 1, 2), None]),
        (pa.array(["AAE=", None]), pa.binary(), [b"\x00\x01", None]),
        (pa.array([True, None]), pa.bool_(), [True, None]),
        (pa.array(["[1,2]", None, "[]"]), pa.list_(pa.int32()), [[1, 2], None, []]),
    ],
)
def test_encoded_types_become_any_other(encoded: pa.Array, kind: pa.DataType, plain: list[Any]) -> None:
    found = decoded_array(encoded, kind)
    assert found.type == kind
    assert ["nan" if each != each else each for each in found.to_pylist()] == plain


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(StoredValueError, match="int8"):
        decoded_array(pa.array([300]), pa.int8())
