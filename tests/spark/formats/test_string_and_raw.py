"""Text and bytes as they are."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as spark

from kohort.spark.formats import FormatError, decoder, encoder

TEXT = spark.StructType([spark.StructField("line", spark.StringType())])
BYTES = spark.StructType([spark.StructField("body", spark.BinaryType())])


def is_text(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


@settings(max_examples=200, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=8) | st.text(max_size=5).map(str.encode), max_size=8))
def test_any_bytes(values: list[bytes | None]) -> None:
    result = decoder("string", TEXT).decode(pa.array(values, pa.binary()))
    result.columns.validate(full=True)
    assert result.columns.column(0).to_pylist() == [
        None if value is None else value.decode() for value in values if is_text(value)
    ]
    assert [row for row, _ in result.errors] == [row for row, value in enumerate(values) if not is_text(value)]
    raw = decoder("raw", BYTES).decode(pa.array(values, pa.binary()))
    assert raw.columns.column(0).to_pylist() == values and raw.good is None
    assert encoder("raw", BYTES).encode(raw.columns).to_pylist() == values


def test_the_schema_is_one_column() -> None:
    with pytest.raises(FormatError, match='"string" has one column of type STRING'):
        decoder("string", BYTES)
    assert decoder("string", TEXT).decode(pa.array([b"\xff"])).errors == [
        (0, "not UTF-8: invalid start byte at byte 0")
    ]
