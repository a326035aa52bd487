"""Rows of a test as records: values, keys and times."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812

from kohort.spark.formats import decoder
from kohort.spark.formats.times import TimeFormats
from kohort.spark.program.compiled import SourceSpec
from kohort.spark.program.error_policies import Fail
from kohort.spark.testing.input import InputRows

AT = datetime(2013, 1, 1, 5, tzinfo=UTC)
SCHEMA = T.StructType(
    [
        T.StructField("name", T.StringType()),
        T.StructField("n", T.LongType()),
        T.StructField("at", T.TimestampType()),
        T.StructField("cost", T.DecimalType(6, 2)),
        T.StructField("day", T.DateType()),
        T.StructField("tags", T.ArrayType(T.StringType())),
    ]
)


def rows_of(format_: str = "json", key: tuple[str, ...] = (), times: TimeFormats | None = None) -> InputRows:
    source = SourceSpec("t", SCHEMA, format_, key, None, "earliest", Fail(), times=times)
    return InputRows(source, plain_decimals=True)


ROW: dict[str, Any] = {
    "name": "ä", "n": 3, "at": AT, "cost": Decimal("1.50"), "day": date(2013, 1, 2), "tags": ["x", "y"],
}  # fmt: skip


@pytest.mark.parametrize("format_", ["json", "avro"])
def test_what_is_decoded_is_what_was_given(format_: str) -> None:
    given = [ROW, {**dict.fromkeys(ROW), "name": "b"}]
    records = rows_of(format_).records(given, None, None, 0)
    decoded = decoder(format_, SCHEMA).decode(records["value"].combine_chunks())
    assert not decoded.errors
    assert decoded.columns.to_pylist() == given


def test_values_that_the_test_has_made_stay_as_they_are() -> None:
    records = rows_of().records([b"\xff", "text", None, {}], None, None, 0)
    assert records["value"].to_pylist() == [b"\xff", b"text", None, b"{}"]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("name",), "ä".encode()),
        (("n",), b"3"),
        (("at",), b"2013-01-01 05:00:00"),
        (("cost",), b"1.50"),
        (("day",), b"2013-01-02"),
        (("name", "n", "at"), '{"name":"ä","n":3,"at":"2013-01-01T05:00:00.000000Z"}'.encode()),
    ],
)
def test_keys_are_those_of_the_columns(columns: tuple[str, ...], expected: bytes) -> None:
    rows = rows_of(key=columns)
    assert rows.records([ROW, b"raw"], None, None, 0)["key"].to_pylist() == [expected, None]
    assert rows.key({name: ROW[name] for name in columns}) == expected


def test_keys_may_be_given() -> None:
    rows = rows_of(key=("name",))
    assert rows.records([ROW, ROW], "k", None, 0)["key"].to_pylist() == [b"k", b"k"]
    given = [b"\xff", None, {"name": "z"}]
    assert rows.records([ROW] * 3, given, None, 0)["key"].to_pylist() == [b"\xff", None, b"z"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, 9),
        (5, 5),
        (datetime(1970, 1, 1, 0, 0, 1), 1_000),
        (datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0),
    ],
)
def test_times_are_those_given_or_now(given: Any, expected: int) -> None:
    assert rows_of().records([{}], None, given, 9)["timestamp"].to_pylist() == [expected]


@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        ("timestamp_seconds", "1357016400"),
        ("timestamp_millis", "1357016400000"),
        ("timestamp_micros", "1357016400000000"),
    ],
)
def test_times_are_written_as_the_topic_has_them(wanted: str, value: str) -> None:
    times = TimeFormats((("at", wanted),))
    rows = rows_of(key=("at",), times=times)
    for at in (AT, int(value)):
        records = rows.records([{"at": at}], None, None, 0)
        assert records["value"].to_pylist() == [b'{"at":%s}' % value.encode()]
        assert records["key"].to_pylist() == [b"2013-01-01 05:00:00"]


def test_a_time_by_a_pattern_is_given_as_text() -> None:
    rows = rows_of(times=TimeFormats((("", "yyyy-MM-dd HH:mm"),)))
    with pytest.raises(
        ValueError, match=r"topic 't', row 1: column 'at' is written as 'yyyy-MM-dd HH:mm': give the text"
    ):
        rows.records([{"at": "2013-01-01 05:00"}, {"at": AT}], None, None, 0)


def test_a_row_that_the_format_cannot_have_is_named() -> None:
    with pytest.raises(ValueError, match=r"topic 't', row 1 isn't one of struct<"):
        rows_of("avro").records([ROW, {"n": "many"}], None, None, 0)


def test_arrow_is_given() -> None:
    table = pa.table({"name": ["a", "b"], "n": [1, 2]})
    expected = [b'{"name":"a","n":1}', b'{"name":"b","n":2}']
    for given in (table, table.to_batches()[0], table.to_pandas()):
        assert rows_of().records(given, None, None, 0)["value"].to_pylist() == expected
