"""What a program says of its sources' times."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812

from kohort.spark import StreamsApp
from kohort.spark.errors import ProgramError
from kohort.spark.formats.derived_times import DerivedTime
from kohort.spark.formats.times import TimeFormats
from kohort.spark.program.compiled import SourceSpec
from kohort.spark.program.source_times import event_time_of
from kohort.spark.program.sources import resolved

BID = T.StructType(
    [
        T.StructField("auction", T.LongType()),
        T.StructField("dateTime", T.TimestampType()),
        T.StructField("order", T.StructType([T.StructField("at", T.TimestampType())])),
    ]
)


def source(schema: T.StructType = BID, **said: Any) -> SourceSpec:
    stream = StreamsApp("app").stream("bids", schema=schema, **said)
    return resolved(stream._origin, "stream")  # type: ignore[arg-type]


def test_one_format_for_all_or_one_by_column() -> None:
    assert source().times is None
    assert source(timestamp_format="timestamp_millis").times == TimeFormats((("", "timestamp_millis"),))
    said = source(timestamp_format={"dateTime": "timestamp_millis", "order.at": "yyyy-MM-dd"}, time_zone="Asia/Tokyo")
    assert said.times == TimeFormats((("dateTime", "timestamp_millis"), ("order.at", "yyyy-MM-dd")), "Asia/Tokyo")
    assert source(time_zone="Asia/Tokyo").times == TimeFormats((), "Asia/Tokyo")
    assert source(timestamp_format={"order": "timestamp_millis"}).times is not None


def test_tables_have_them_too() -> None:
    app = StreamsApp("app")
    table = app.table("t", schema=BID, key="auction", timestamp_format="timestamp_micros")
    assert table._definition.source.times == TimeFormats((("", "timestamp_micros"),))
    table = app.global_table("g", schema=BID, key="auction", time_zone="+02:00")
    assert table._definition.source.times == TimeFormats((), "+02:00")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"timestamp_format": "timestamp_milis"}, r"stream 'bids': timestamp_format 'timestamp_milis': .*_millis"),
        ({"timestamp_format": {"datetime": "timestamp_millis"}}, "'datetime': it isn't in the schema; .*dateTime"),
        ({"timestamp_format": {"auction": "timestamp_millis"}}, "'auction': it isn't a TIMESTAMP"),
        ({"timestamp_format": {"dateTime": ""}}, "say one for all TIMESTAMP columns"),
        ({"timestamp_format": 1}, "say one for all TIMESTAMP columns"),
        ({"time_zone": "Mars/Olympus"}, "stream 'bids': time_zone 'Mars/Olympus' isn't known"),
        ({"time_zone": "UTC", "format": "avro"}, "time_zone is for format=\"json\""),
        ({"timestamp_format": "yyyy-MM-dd", "schema": T.StructType(BID.fields[:1])}, "the schema has none"),
    ],
)  # fmt: skip
def test_formats_that_cant_be(said: dict[str, Any], told: str) -> None:
    with pytest.raises(ProgramError, match=told):
        source(**said)


def test_the_event_time_may_be_made_of_a_number() -> None:
    found = source(event_time="timestamp_millis(auction) AS at")
    assert (found.event_time, found.derived) == ("at", (DerivedTime("at", "timestamp_millis", "auction"),))
    assert found.schema.names == [*BID.names, "at"]


class Column:
    """As PySpark shows one, which takes a session to be made."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return f"Column<'{self._text}'>"


def test_a_column_of_spark_is_such_an_expression() -> None:
    given: Any = Column("timestamp_seconds(`a b`) AS at")
    assert event_time_of("stream", given) == ("at", DerivedTime("at", "timestamp_seconds", "a b"))
    given = Column("dateTime")
    assert event_time_of("stream", given) == ("dateTime", None)


@pytest.mark.parametrize(
    ("event_time", "told"),
    [
        ("timestamp_millis(auction)", r"needs a name.*\.alias\(\"at\"\)"),
        ("to_timestamp(auction) AS at", "it takes a TIMESTAMP column's name, or .*timestamp_millis"),
        ("timestamp_millis(price) AS at", r"timestamp_millis\('price'\): there is no such column"),
        ("timestamp_millis(dateTime) AS at", "takes a whole number, but 'dateTime' is TIMESTAMP"),
        ("timestamp_millis(auction) AS order", "'order' is there twice"),
        ("auction", r"must be a TIMESTAMP, but it is BIGINT.*timestamp_format={'auction': 'timestamp_millis'}.*alias"),
    ],
)
def test_event_times_that_cant_be(event_time: str, told: str) -> None:
    with pytest.raises(ProgramError, match=told):
        source(event_time=event_time)


def test_the_records_own_time_is_a_column_if_the_schema_has_it() -> None:
    own = T.StructField("_timestamp", T.TimestampType())
    found = source(T.StructType([own, *BID.fields]))
    assert (found.event_time, found.derived) == ("_timestamp", (DerivedTime("_timestamp"),))
    assert source(T.StructType([own, *BID.fields]), event_time="dateTime").event_time == "dateTime"
    text = T.StructType([T.StructField("value", T.StringType()), own])
    assert source(text, format="string").schema.names == ["value", "_timestamp"]
    with pytest.raises(ProgramError, match="no column beside _timestamp"):
        source(T.StructType([own]))
    with pytest.raises(ProgramError, match="a TIMESTAMP, not BIGINT"):
        source(T.StructType([T.StructField("_timestamp", T.LongType()), *BID.fields]))


def test_times_are_null_where_they_cant_be() -> None:
    numbers = pa.array([0, None, 253_402_300_799_999, 253_402_300_800_000, -62_135_596_800_001, 2**63 - 1])
    made = DerivedTime("at", "timestamp_millis", "n").of(numbers)
    assert made.type == pa.timestamp("us", "UTC")
    assert made.cast(pa.int64()).to_pylist() == [0, None, 253_402_300_799_999_000, None, None, None]
    assert DerivedTime("at").of(pa.array([-1, 1])).cast(pa.int64()).to_pylist() == [None, 1_000]
