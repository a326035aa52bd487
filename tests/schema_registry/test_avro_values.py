"""Avro values, beside fastavro's; and any bytes, by any schema."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.schema_registry.avro_values import AvroSchema
from kohort.schema_registry.value_error import ValueFault

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Flight",
    "namespace": "a.b",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "who", "type": ["null", "string"]},
        {"name": "delay", "type": "double"},
        {"name": "small", "type": "float"},
        {"name": "good", "type": "boolean"},
        {"name": "raw", "type": "bytes"},
        {"name": "tag", "type": {"type": "fixed", "name": "Tag", "size": 2}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["IN", "OUT"]}},
        {"name": "again", "type": ["null", "Kind", "a.b.Tag"]},
        {"name": "list", "type": {"type": "array", "items": "int"}},
        {"name": "map", "type": {"type": "map", "values": ["int", "string"]}},
        {"name": "inner", "type": ["null", {"type": "record", "name": "Inner", "fields": [
            {"name": "next", "type": ["null", "Inner"]}]}]},
    ],
}  # fmt: skip
PARSED = fastavro.parse_schema(SCHEMA)

INNER: Any = st.recursive(st.none(), lambda inner: st.fixed_dictionaries({"next": inner}), max_leaves=4)
FLIGHTS = st.fixed_dictionaries(
    {
        "n": st.integers(-(2**63), 2**63 - 1),
        "who": st.none() | st.text(),
        "delay": st.floats(allow_nan=False, allow_infinity=False),
        "small": st.floats(allow_nan=False, allow_infinity=False, width=32),
        "good": st.booleans(),
        "raw": st.binary(),
        "tag": st.binary(min_size=2, max_size=2),
        "kind": st.sampled_from(["IN", "OUT"]),
        "again": st.none() | st.sampled_from([("a.b.Kind", "OUT"), ("a.b.Tag", b"\1\2")]),
        "list": st.lists(st.integers(-(2**31), 2**31 - 1)),
        "map": st.dictionaries(st.text(), st.integers(-(2**31), 2**31 - 1) | st.text()),
        "inner": INNER,
    }
)


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def plain(value: Any) -> Any:
    """What fastavro takes, as it is shown."""
    match value:
        case dict():
            return {name: plain(each) for name, each in value.items()}
        case tuple():
            return plain(value[1])
        case bytes():
            return value.hex()
    return value


@given(FLIGHTS)
def test_what_fastavro_writes_is_read(flight: dict[str, Any]) -> None:
    assert AvroSchema(json.dumps(SCHEMA)).decode(written(PARSED, flight)) == plain(flight)


@pytest.mark.parametrize(
    ("schema", "data", "value"),
    [
        ({"type": "int", "logicalType": "date"}, "02", "1970-01-02"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "d00f", "1970-01-01T00:00:01Z"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "02", "1970-01-01T00:00:00.000001"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "04ff85", "-1.23"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "feffffffffffffffff01", 2**63 - 1),
        ("string", "0461c3", "a\\xc3"),
        ("double", "000000000000f0ff", "-inf"),
    ],
)
def test_types_of_more_meaning(schema: Any, data: str, value: object) -> None:
    assert AvroSchema(json.dumps(schema)).decode(bytes.fromhex(data)) == value


def test_types_of_other_schemas_are_known() -> None:
    other = json.dumps({"type": "enum", "name": "x.Kind", "symbols": ["A", "B"]})
    assert AvroSchema('{"type": "array", "items": "x.Kind"}', [("Kind", other)]).decode(b"\x02\x02\x00") == ["B"]


@pytest.mark.parametrize(
    ("schema", "data", "why"),
    [
        ('"string"', b"\x08ab", "it ends at byte 3, where 4 bytes are wanted from 1 on"),
        ('"int"', b"\x02\x02", "1 bytes are left over"),
        ('["null"]', b"\x02", "branch 1 of a union of 1"),
        ('{"type": "array", "items": "null"}', b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\0", "more than 200,000 parts"),
        ('"int"', b"\xff" * 11, "more than ten bytes"),
        ('"Other"', b"", "no type 'Other'"),
        ('{"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}', b"", "nested too deeply"),
        ('{"type": "record", "name": "R"}', b"", "no list of fields"),
        ("{", b"", "isn't JSON"),
        ("[" * 5_000 + "]" * 5_000, b"", "deeply|JSON"),
    ],
)
def test_what_is_wrong_is_said(schema: str, data: bytes, why: str) -> None:
    with pytest.raises(ValueFault, match=why):
        AvroSchema(schema).decode(data)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(ValueFault):
        json.dumps(AvroSchema(json.dumps(SCHEMA)).decode(data))


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["record", "array", "map", "int", "enum", "R"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["type", "name", "fields", "items", "values", "symbols", "size"]), inner),
    max_leaves=12,
), st.binary(max_size=8))  # fmt: skip
def test_any_schema_is_read_or_refused(schema: Any, data: bytes) -> None:
    with contextlib.suppress(ValueFault):
        AvroSchema(json.dumps(schema)).decode(data)
