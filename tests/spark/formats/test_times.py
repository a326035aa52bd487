"""Times in JSON: numbers since 1970, patterns, and zones."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark

from kohort.spark.formats import FormatError, decoder
from kohort.spark.formats.times import FIRST_US, LAST_US, TimeFormats

AT = spark.StructType([spark.StructField("at", spark.TimestampType())])
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def read(format: str, *values: Any, zone: str = "UTC", schema: spark.StructType = AT) -> list[Any]:  # noqa: A002
    """Of each value the time, or why it is none; of a text as a time in UTC: "2013-01-31 05:00:00"."""
    times = TimeFormats((("", format),) if format else (), zone)
    rows = [value if isinstance(value, bytes) else json.dumps({"at": value}).encode() for value in values]
    result = decoder("json", schema, times=times).decode(pa.array(rows, pa.binary()))
    good = list(range(len(rows))) if result.good is None else result.good.to_pylist()
    made: list[Any] = [dict(result.errors).get(row) for row in range(len(rows))]
    for row, time in zip(good, result.columns.column(0).to_pylist(), strict=True):
        made[row] = time.replace(tzinfo=None).isoformat(" ") if isinstance(time, datetime.datetime) else time
    return made


def test_numbers_since_1970() -> None:
    assert read("timestamp_millis", 1_359_608_400_123, None, -1, b"{}", 0) == [
        "2013-01-31 05:00:00.123000", None, "1969-12-31 23:59:59.999000", None, "1970-01-01 00:00:00",
    ]  # fmt: skip
    assert read("timestamp_seconds", 1_359_608_400) == ["2013-01-31 05:00:00"]
    assert read("timestamp_micros", 1_359_608_400_000_001) == ["2013-01-31 05:00:00.000001"]


def test_numbers_may_have_fractions_and_quotes() -> None:
    """As Jackson writes an Instant, Python a time.time(), and Protocol Buffers all 64 bits."""
    values = [
        b'{"at":1359608400.123456789}', b'{"at":"1359608400"}', b'{"at":1359608400.1234567}', b'{"at":1.3596084e9}',
        b'{"at":"\\u0031359608400"}',
    ]  # fmt: skip
    assert read("timestamp_seconds", *values) == [
        "2013-01-31 05:00:00.123456", "2013-01-31 05:00:00", "2013-01-31 05:00:00.123456", "2013-01-31 05:00:00",
        "2013-01-31 05:00:00",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("format", "value"),
    [
        ("timestamp_seconds", 1_359_608_400.123456),
        ("timestamp_millis", 1_359_608_400_000),
        ("yyyy-MM-dd HH:mm:ss", "2013-01-31 00:00:00"),
        ("", "2013-01-31 00:00:00"),
    ],
)
def test_none_takes_a_python_object_for_each(monkeypatch: pytest.MonkeyPatch, format: str, value: object) -> None:  # noqa: A002
    monkeypatch.delattr("kohort.spark.formats.json_decoder.JsonDecoder._row")
    monkeypatch.delattr("kohort.spark.formats.times.Written.one")
    assert len(set(read(format, *[value] * 10, zone="America/New_York"))) == 1


def test_what_is_no_number_says_what_is_wanted() -> None:
    bad = ["2013-01-31T05:00:00Z", True, [], 253_402_300_800_000, -62_135_596_800_001, 10**30, "1e", ""]
    for text in read("timestamp_millis", *bad):
        assert text.startswith("at: a time in milliseconds since 1970 is wanted, not ")


@given(st.integers(FIRST_US, LAST_US))
def test_all_times_there_are(micros: int) -> None:
    time = (EPOCH + datetime.timedelta(microseconds=micros)).replace(tzinfo=None).isoformat(" ")
    assert read("timestamp_micros", micros) == [time]
    whole = f"{Decimal(micros).scaleb(-6):f}"
    assert read("timestamp_seconds", f'{{"at":{whole}}}'.encode(), whole) == [time, time]


@pytest.mark.parametrize(
    ("value", "format", "unit"),
    [
        (1_359_608_400_123, "timestamp_millis", "milliseconds"),
        (1_359_608_400, "timestamp_seconds", "seconds"),
        (1_359_608_400_000_000, "timestamp_micros", "microseconds"),
        ("1359608400123", "timestamp_millis", "milliseconds"),
    ],
)
def test_a_number_without_a_format_is_told_which_it_may_be(value: object, format: str, unit: str) -> None:  # noqa: A002
    (text,) = read("", value)
    assert text == (
        f"at: a time such as 2013-01-31T05:00:00Z is wanted, not {json.dumps(value)}; "
        f"if it counts {unit} since 1970, say timestamp_format={{'at': '{format}'}}"
    )
    assert "timestamp_format" not in read("", 17)[0]


def test_patterns() -> None:
    assert read("yyyy-MM-dd HH:mm:ss", "2013-01-31 05:00:01") == ["2013-01-31 05:00:01"]
    assert read("d.M.yyyy H:mm[:ss]", "1.2.2013 5:07", "11.12.2013 15:07:09") == [
        "2013-02-01 05:07:00", "2013-12-11 15:07:09",
    ]  # fmt: skip
    assert read("yyyyMMddHHmmssSSS", "20130131050001123") == ["2013-01-31 05:00:01.123000"]
    assert read("yyyy-MM-dd'T'HH:mm:ss.SSSSSSSSS", "2013-01-31T05:00:01.123456789", "2013-01-31T05:00:01.5") == [
        "2013-01-31 05:00:01.123456", "2013-01-31 05:00:01.500000",
    ]  # fmt: skip
    assert read("MMM d, yyyy h:mm:ss a", "Jan 31, 2013 12:00:01 AM", "jun 3, 2013 12:05:01 pm") == [
        "2013-01-31 00:00:01", "2013-06-03 12:05:01",
    ]  # fmt: skip
    assert read("dd MMMM yy", "31 January 13", "01 may 14") == ["2013-01-31 00:00:00", "2014-05-01 00:00:00"]
    assert read("''yyyy' o''clock 'MM/dd", "'2013 o'clock 01/31", b'{"at":"\'2013 o\'clock 01\\/31"}') == [
        "2013-01-31 00:00:00", "2013-01-31 00:00:00",
    ]  # fmt: skip


def test_offsets_in_patterns() -> None:
    pattern = "yyyy-MM-dd HH:mm:ss[X]"
    values = ["2013-01-31 05:00:00Z", "2013-01-31 05:00:00+01", "2013-01-31 05:00:00-0530", "2013-01-31 05:00:00+05:30"]
    for zone in ("UTC", "Asia/Tokyo"):
        assert read(pattern, *values, zone=zone) == [
            "2013-01-31 05:00:00", "2013-01-31 04:00:00", "2013-01-31 10:30:00", "2013-01-30 23:30:00",
        ]  # fmt: skip
    assert read(pattern, "2013-01-31 05:00:00", zone="Asia/Tokyo") == ["2013-01-30 20:00:00"]
    assert "is wanted" in read("yyyy-MM-dd HH:mm:ssx", "2013-01-31 05:00:00Z")[0]


def test_what_a_pattern_doesnt_fit_says_so() -> None:
    bad = [
        "2013-01-31", "2013-01-31 05:00:00 ", "2013-02-29 05:00:00", "2013-01-31 24:00:00", "2013-13-01 05:00:00",
        "13-01-31 05:00:00", "", "2013-01-31T05:00:00", 1_359_608_400_123,
    ]  # fmt: skip
    for text in read("yyyy-MM-dd HH:mm:ss", *bad):
        assert text.startswith("at: a time such as yyyy-MM-dd HH:mm:ss is wanted, not ")
    assert "timestamp_format={'at': 'timestamp_millis'}" in read("yyyy-MM-dd HH:mm:ss", bad[-1])[0]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("timestamp_milis", "isn't read"),
        ("HH:mm", "year, month and day"),
        ("yyyy-MM[-dd]", "not in brackets"),
        ("yyyy-MM-dd hh:mm", "h goes with a"),
        ("yyyy-MM-dd[ HH", "isn't closed"),
        ("yyyy-MM-dd 'at", "isn't closed"),
        ("yyyy-MM-dd VV", "VV isn't read"),
    ],
)
def test_patterns_that_cant_be(pattern: str, why: str) -> None:
    with pytest.raises(FormatError, match=r"timestamp_format .*timestamp_millis") as error:
        decoder("json", AT, times=TimeFormats((("at", pattern),)))
    assert why in str(error.value)


def test_a_zone_that_cant_be() -> None:
    for zone in ("Mars/Olympus", ""):
        with pytest.raises(FormatError, match=f"time_zone '{zone}' isn't known"):
            decoder("json", AT, times=TimeFormats((), zone))


def test_utc_takes_no_table_of_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("kohort.spark.formats.times._in_zone")
    assert read("", "2013-01-31 05:00:00") == ["2013-01-31 05:00:00"]
    assert read("yyyy-MM-dd", "2013-01-31") == ["2013-01-31 00:00:00"]


def test_clocks_of_a_place() -> None:
    """What they show twice is the first time; what they leave out is as much later, as in Spark."""
    values = ["2013-03-10 02:30:00", "2013-11-03 01:30:00", "2013-07-01 00:00:00Z", "2013-07-01", "2050-07-01 00:00:00"]
    expected = [
        "2013-03-10 07:30:00", "2013-11-03 05:30:00", "2013-07-01 00:00:00", "2013-07-01 04:00:00",
        "2050-07-01 04:00:00",
    ]  # fmt: skip
    assert read("", *values, zone="America/New_York") == expected
    for row in (0, 1, 4):
        assert read("yyyy-MM-dd HH:mm:ss", values[row], zone="America/New_York") == [expected[row]]
    assert read("", values[0], zone="+02:00") == ["2013-03-10 00:30:00"]


@given(
    st.datetimes(datetime.datetime(1800, 1, 1), datetime.datetime(2200, 1, 1)),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
)
def test_zones_are_those_of_python(time: datetime.datetime, zone: str) -> None:
    expected = time.replace(tzinfo=ZoneInfo(zone)).astimezone(datetime.UTC).replace(tzinfo=None)
    assert read("", time.isoformat(), zone=zone) == [expected.isoformat(" ")]


def test_each_column_has_its_own_format_nested_ones_too() -> None:
    when = spark.TimestampType()
    order = spark.StructType([spark.StructField("at", when), spark.StructField("paid", when)])
    schema = spark.StructType(
        [
            spark.StructField("at", when),
            spark.StructField("order", order),
            spark.StructField("seen", spark.ArrayType(when)),
            spark.StructField("by", spark.MapType(spark.StringType(), order)),
        ]
    )
    times = TimeFormats(
        (("order", "timestamp_seconds"), ("order.paid", "yyyy-MM-dd"), ("seen", "timestamp_millis"), ("", "dd.MM.yyyy"))
    )
    value = {
        "at": "31.01.2013", "order": {"at": 1_359_608_400, "paid": "2013-01-31"}, "seen": [1_359_608_400_000],
        "by": {"x": {"at": "31.01.2013", "paid": None}},
    }  # fmt: skip
    result = decoder("json", schema, times=times).decode(pa.array([json.dumps(value).encode()]))
    day, five = (datetime.datetime(2013, 1, 31, hour, tzinfo=datetime.UTC) for hour in (0, 5))
    assert result.columns.to_pylist() == [
        {"at": day, "order": {"at": five, "paid": day}, "seen": [five], "by": [("x", {"at": day, "paid": None})]}
    ]
    bad = decoder("json", schema, times=times).decode(pa.array([b'{"order":{"at":"x"}}', b'{"seen":[1,"x"]}']))
    assert [text for _, text in bad.errors] == [
        'order.at: a time in seconds since 1970 is wanted, not "x"',
        'seen[1]: a time in milliseconds since 1970 is wanted, not "x"',
    ]
