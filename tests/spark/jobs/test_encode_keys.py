"""Keys of records, written in formats and read again."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark

from kohort.spark.formats import decoder
from kohort.spark.jobs.stages.encode_keys import encoded_keys
from kohort.spark.program.record_keys import KeyReading, KeyWriting, key_reading, key_writing
from kohort.spark.program.sources import parsed_schema

LONG = spark.StructType([spark.StructField("id", spark.LongType())])
BOTH = spark.StructType([*LONG.fields, spark.StructField("shop", spark.StringType())])


def keys(writing: KeyWriting, *rows: tuple[Any, ...]) -> list[bytes | None]:
    """The keys of rows, which have a column of numbers before those of the key."""
    names = spark.StructType.fromJson(json.loads(writing.schema)).names
    kinds = {"id": pa.int64(), "shop": pa.string(), "data": pa.binary()}
    columns = [pa.array([row[at] for row in rows], kinds[name]) for at, name in enumerate(names)]
    batch = pa.RecordBatch.from_arrays([pa.array(range(len(rows))), *columns], names=["n", *names])
    made = encoded_keys(writing, batch)
    assert made.schema.names == ["n", "_key"] and made.column("n").to_pylist() == list(range(len(rows)))
    found: list[bytes | None] = made.column("_key").to_pylist()
    return found


def read(reading: KeyReading, values: list[bytes | None]) -> list[dict[str, Any]]:
    schema = spark.StructType.fromJson(json.loads(reading.schema))
    decoded = decoder(reading.format, schema, reading.avro_schema).decode(pa.array(values, pa.binary()))
    assert not decoded.errors
    rows: list[dict[str, Any]] = decoded.columns.to_pylist()
    return rows


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_one_column_of_avro_is_its_value_alone(numbers: list[int | None]) -> None:
    writing = key_writing("to", "avro", LONG, None, None, "t", None)
    made = keys(writing, *[(number,) for number in numbers])
    assert made == [None if number is None else written("long", number) for number in numbers]
    reading = key_reading("stream", "avro", LONG, None, "t-key", parsed_schema)
    assert read(reading, made) == [{"id": number} for number in numbers]


@pytest.mark.parametrize("form", ["json", "avro"])
@given(rows=st.lists(st.tuples(st.none() | st.integers(-9, 2**40), st.none() | st.text()), min_size=1))
def test_several_columns_come_back(form: str, rows: list[tuple[int | None, str | None]]) -> None:
    made = keys(key_writing("to", form, BOTH, None, None, "t", None), *rows)
    reading = key_reading("stream", form, BOTH, None, "t-key", parsed_schema)
    assert read(reading, made) == [{"id": number, "shop": shop} for number, shop in rows]


def test_text_and_bytes_are_as_they_are() -> None:
    text = spark.StructType([BOTH["shop"]])
    assert keys(key_writing("to", "string", text, None, None, "t", None), ("ä",), (None,)) == ["ä".encode(), None]
    raw = spark.StructType([spark.StructField("data", spark.BinaryType())])
    assert keys(key_writing("to", "raw", raw, None, None, "t", None), (b"\xff",), (b"",)) == [b"\xff", b""]
