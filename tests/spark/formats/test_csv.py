"""CSV: what Python's csv module writes is read; whatever the bytes, bad rows are named, and rows stay aligned."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as spark

from kohort.spark.formats import FormatError
from kohort.spark.formats.csv_format import CsvDecoder, CsvEncoder, CsvFields

SCHEMA = spark.StructType(
    [
        spark.StructField("n", spark.LongType()),
        spark.StructField("x", spark.DoubleType()),
        spark.StructField("s", spark.StringType()),
        spark.StructField("b", spark.BooleanType()),
        spark.StructField("at", spark.TimestampType()),
        spark.StructField("d", spark.DateType()),
        spark.StructField("p", spark.DecimalType(9, 2)),
    ]
)
NAMES = SCHEMA.names
times = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)).map(lambda time: time.replace(tzinfo=UTC))
rows_ = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(-(2**63), 2**63 - 1), "x": st.none() | st.floats(allow_nan=False),
        "s": st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8),
        "b": st.none() | st.booleans(), "at": st.none() | times, "d": st.none() | st.dates(date(1900, 1, 1)),
        "p": st.none() | st.decimals("-99999.99", "99999.99", places=2),
    }
)  # fmt: skip


def read(values: list[bytes | None], made: CsvDecoder) -> list[Any]:
    """A row for each value, None for the bad ones."""
    result = made.decode(pa.array(values, pa.binary()))
    result.columns.validate(full=True)
    good = list(range(len(values))) if result.good is None else result.good.to_pylist()
    assert sorted([*good, *(row for row, _ in result.errors)]) == list(range(len(values)))
    found: list[Any] = [None] * len(values)
    for row, each in zip(good, result.columns.to_pylist(), strict=True):
        found[row] = each
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(rows_, max_size=5), st.sampled_from(",;|\t"))
def test_what_is_written_is_read(rows: list[dict[str, Any]], delimiter: str) -> None:
    decoder = CsvDecoder(SCHEMA, CsvFields(tuple(NAMES), delimiter))
    values = CsvEncoder(SCHEMA, delimiter).encode(pa.Table.from_pylist(rows, schema=decoder.schema)).to_pylist()
    assert read(values, decoder) == rows
    for value, row in zip(values, rows, strict=True):
        (fields,) = csv.reader(io.StringIO(value.decode(), newline=""), delimiter=delimiter)
        assert (fields[2], fields[0]) == (row["s"] or "", "" if row["n"] is None else str(row["n"]))


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(texts, min_size=2, max_size=2), max_size=5))
def test_what_pythons_csv_writes_is_read(rows: list[list[str]]) -> None:
    values: list[bytes | None] = []
    for row in rows:
        out = io.StringIO()
        csv.writer(out).writerow(row)
        values.append(out.getvalue().encode())
    schema = spark.StructType([spark.StructField(name, spark.StringType()) for name in "ab"])
    assert read(values, CsvDecoder(schema)) == [dict(zip("ab", row, strict=True)) for row in rows]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.none() | st.text('a1",\r\n', max_size=7).map(str.encode) | st.binary(max_size=5), max_size=6))
def test_any_bytes_are_read_as_they_are_alone(values: list[bytes | None]) -> None:
    schema = spark.StructType([spark.StructField("a", spark.StringType()), spark.StructField("b", spark.LongType())])
    made = CsvDecoder(schema)
    assert read(values, made) == [read([value], made)[0] for value in values]


def test_faults_are_named() -> None:
    schema = spark.StructType(
        [spark.StructField("a", spark.LongType(), nullable=False), spark.StructField("at", spark.TimestampType())]
    )
    given_ = [
        b"1,2013-01-31T05:00:00Z",
        b"1",
        b'1,"',
        b"x,",
        b",",
        b"1,2013-01-31 05:00:00+02:00",
        b"1,2013-01-31",
        None,
    ]
    found = CsvDecoder(schema).decode(pa.array(given_, pa.binary()))
    assert [each["at"] for each in found.columns.to_pylist()] == [
        datetime(2013, 1, 31, 5, tzinfo=UTC),
        datetime(2013, 1, 31, 3, tzinfo=UTC),
        datetime(2013, 1, 31, tzinfo=UTC),
    ]
    errors = dict(found.errors)
    assert errors[1] == errors[2] == "no CSV of these columns: it isn't one record of 2 fields"
    assert "invalid value 'x'" in errors[3]
    assert errors[4] == errors[7] == "a: there is none, and null isn't allowed"


@pytest.mark.parametrize("delimiter", ["", ",,", "ä", *"\"'\0\r\n", *"a0TZe", *"+-.:"])
def test_delimiters_that_can_not_be(delimiter: str) -> None:
    with pytest.raises(FormatError, match="one character of ASCII"):
        CsvDecoder(SCHEMA, CsvFields(tuple(NAMES), delimiter))


def test_types_that_can_not_be() -> None:
    with pytest.raises(FormatError, match="column a: array<bigint> is no field of CSV"):
        CsvEncoder(spark.StructType([spark.StructField("a", spark.ArrayType(spark.LongType()))]))


def test_fields_that_are_not_wanted_are_passed_over() -> None:
    schema = spark.StructType([spark.StructField("c", spark.LongType()), spark.StructField("a", spark.StringType())])
    made = CsvDecoder(schema, CsvFields(("a", "b", "c"), ";"))
    assert read([b"x;not a number;3", b";;"], made) == [{"c": 3, "a": "x"}, {"c": None, "a": None}]


def test_decimals_are_exact() -> None:
    schema = spark.StructType([spark.StructField("p", spark.DecimalType(20, 2))])
    assert read([b"123456789012345678.90"], CsvDecoder(schema)) == [{"p": Decimal("123456789012345678.90")}]


def test_a_byte_order_mark_is_none_of_any_records() -> None:
    """Whichever record is read first."""
    schema = spark.StructType([spark.StructField("a", spark.StringType())])
    assert read(["\ufeffx".encode(), "\ufeffy".encode(), b"z"], CsvDecoder(schema)) == [
        {"a": "x"}, {"a": "y"}, {"a": "z"},
    ]  # fmt: skip
