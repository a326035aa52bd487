"""The Avro decoder: what fastavro wrote is read; whatever the bytes, bad rows are named, and rows stay aligned."""

from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as spark

from kohort.spark.formats import FormatError, decoder, encoder

AVRO = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Row",
        "fields": [
            {"name": "i", "type": "int"},
            {"name": "l", "type": ["null", "long"]},
            {"name": "skipped", "type": ["string", "null"]},
            {"name": "f", "type": ["float", "null"]},
            {"name": "d", "type": "double"},
            {"name": "s", "type": ["null", "string"]},
            {"name": "b", "type": "bytes"},
            {"name": "x", "type": {"type": "fixed", "name": "Four", "size": 4}},
            {"name": "e", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}},
            {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "n", "type": "null"},
            {"name": "o", "type": "boolean"},
        ],
    }
)
TEXT = json.dumps({key: value for key, value in AVRO.items() if not key.startswith("__")})
LENIENT = fastavro.parse_schema(json.loads(TEXT.replace('["string", "null"]', '["bytes", "null"]')))
"""Nobody looks into what isn't wanted."""
KINDS = {
    "i": spark.IntegerType(),
    "l": spark.LongType(),
    "f": spark.FloatType(),
    "d": spark.DoubleType(),
    "s": spark.StringType(),
    "b": spark.BinaryType(),
    "x": spark.BinaryType(),
    "e": spark.StringType(),
    "t": spark.TimestampType(),
    "o": spark.BooleanType(),
}
SCHEMA = spark.StructType([spark.StructField(name, kind) for name, kind in KINDS.items()])
DECODER = decoder("avro", SCHEMA, TEXT)
TIMES = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1)).map(
    lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000, tzinfo=datetime.UTC)
)

rows_ = st.fixed_dictionaries(
    {
        "i": st.integers(-(2**31), 2**31 - 1), "l": st.none() | st.integers(-(2**63), 2**63 - 1),
        "skipped": st.none() | st.text(max_size=5), "f": st.none() | st.floats(width=32, allow_nan=False),
        "d": st.floats(allow_nan=False), "s": st.none() | st.text(max_size=20), "b": st.binary(max_size=20),
        "x": st.binary(min_size=4, max_size=4), "e": st.sampled_from(["RED", "GREEN"]),
        "t": TIMES, "n": st.none(), "o": st.booleans(),
    }
)  # fmt: skip


def written(row: dict[str, Any], schema: Any = AVRO) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, row)
    return out.getvalue()


def by_fastavro(value: bytes) -> dict[str, Any] | None:
    source = io.BytesIO(value)
    try:
        row = fastavro.schemaless_reader(source, LENIENT)  # type: ignore[call-arg]
    except Exception:
        return None
    return row if source.tell() == len(value) else None  # type: ignore[return-value]


def read(values: list[bytes | None], made: Any = DECODER) -> list[Any]:
    """A row for each value, None for the bad ones."""
    result = made.decode(pa.array(values, pa.binary()))
    result.columns.validate(full=True)
    good = list(range(len(values))) if result.good is None else result.good.to_pylist()
    assert sorted([*good, *(row for row, _ in result.errors)]) == list(range(len(values)))
    found: list[Any] = [None] * len(values)
    for row, values_ in zip(good, result.columns.to_pylist(), strict=True):
        found[row] = values_
    return found


@settings(max_examples=200, deadline=None)
@given(st.lists(rows_, max_size=5))
def test_what_was_written_is_read(rows: list[dict[str, Any]]) -> None:
    found = read([written(row) for row in rows])
    assert found == [{name: row[name] for name in KINDS} for row in rows]


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    value = bytearray(written(draw(rows_)))
    at = draw(st.integers(0, len(value)))
    value[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(value)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.none() | rows_.map(written) | broken() | st.binary(max_size=60), max_size=6))
def test_any_bytes(values: list[bytes | None]) -> None:
    for value, row in zip(values, read(values), strict=True):
        if value is None:
            assert row == dict.fromkeys(KINDS)
        elif row is not None:
            wanted = by_fastavro(value)
            assert wanted is not None
            for name, each in row.items():
                assert each == wanted[name] or each != each


def test_faults_are_named() -> None:
    good = written({"i": 1, "l": 2, "skipped": "", "f": 0.5, "d": 1.0, "s": "é", "b": b"", "x": b"1234", "e": "RED",
                    "t": datetime.datetime(2013, 1, 1, tzinfo=datetime.UTC), "n": None, "o": True})  # fmt: skip
    result = DECODER.decode(pa.array([good[:-1], good + b"\0", b"", b"\x80" * 11, b"\x02\x08", good], pa.binary()))
    assert [text.removeprefix("no Avro of this schema: ") for _, text in result.errors] == [
        "o: the value ends within it",
        "bytes after the record's end",
        "i: the value ends within it",
        "i: a number of more bits than its type has",
        "l: a branch that its union doesn't have",
    ]
    assert result.good.to_pylist() == [5]


def test_faults_of_nested_records_are_named() -> None:
    avro = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": {"type": "array", "items": ["null", "int"]}}],
    }
    kind = spark.ArrayType(spark.IntegerType(), containsNull=False)
    made = decoder("avro", spark.StructType([spark.StructField("a", kind)]), json.dumps(avro))
    found = made.decode(pa.array([b"\x02\x02\x06\x00", b"\x02\x00\x00", b"", b"\x02\x02"], pa.binary()))
    assert found.columns.to_pylist() == [{"a": [3]}]
    assert dict(found.errors) == {
        1: "no Avro of this schema: a: there is a null within, where none is allowed",
        2: "no Avro of this schema: the value ends within it",
        3: "no Avro of this schema: the value ends within it",
    }


def test_by_default_it_reads_what_spark_writes_and_nested_columns() -> None:
    inner = spark.StructType([spark.StructField("q", spark.StringType())])
    schema = spark.StructType(
        [
            spark.StructField("p", spark.DecimalType(10, 2)),
            spark.StructField("a", spark.ArrayType(spark.LongType())),
            spark.StructField("m", spark.MapType(spark.StringType(), inner)),
            spark.StructField("d", spark.DateType()),
            spark.StructField("w", spark.TimestampNTZType()),
        ]
    )
    rows = [
        {"p": Decimal("12.50"), "a": [1, None], "m": [("k", {"q": "v"})], "d": datetime.date(2013, 1, 1),
         "w": datetime.datetime(2013, 1, 1, 5)},
        dict.fromkeys("pamdw"),
    ]  # fmt: skip
    made = decoder("avro", schema)
    values = encoder("avro", schema).encode(pa.Table.from_pylist(rows, schema=made.schema))
    assert read([*values.to_pylist(), b"\xff", None], made) == [rows[0], rows[1], None, rows[1]]


@pytest.mark.parametrize(
    ("kind", "avro", "why"),
    [
        (spark.LongType(), '{"type":"record","name":"R","fields":[]}', "has no field v, but none"),
        (spark.LongType(), '{"type":"record","name":"R","fields":[{"name":"v","type":"string"}]}',
         "column v: Avro has string, the schema wants bigint"),
        (spark.LongType(), '"long"', "no record's"),
        (spark.LongType(), "{", "isn't JSON"),
        (spark.LongType(), '{"type":"record","name":"R","fields":[{"name":"v","type":["null","R"]}]}',
         "contains itself"),
        (spark.ArrayType(spark.LongType()),
         '{"type":"record","name":"R","fields":[{"name":"v","type":{"type":"array","items":"null"}}]}', "no bytes"),
    ],
)  # fmt: skip
def test_schemas_that_cannot_be(kind: spark.DataType, avro: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        decoder("avro", spark.StructType([spark.StructField("v", kind)]), avro)
