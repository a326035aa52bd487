"""An aggregate's groups in other formats than JSON, under other keys than the store's."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kohort.spark.formats import decoder
from kohort.spark.jobs.errors import StoredValueError
from kohort.spark.jobs.group_records import group_records
from kohort.spark.jobs.output_values import output_values
from kohort.spark.jobs.outputs import GroupOutput, WindowEnd

HOUR = 3_600_000
GROUPS = StructType(
    [
        StructField("origin", StringType()),
        StructField("n", LongType()),
        StructField("price", DecimalType(12, 2)),
        StructField("mean", DoubleType()),
        StructField("day", DateType()),
        StructField("last", TimestampType()),
        StructField("raw", BinaryType()),
    ]
)
TIMES = StructType([StructField("window", TimestampType()), StructField("until", TimestampType())])
KEYS = pa.chunked_array(
    [
        pa.array([b'{"window":"2013-01-01T05:00:00.000Z","origin":"JFK"}'], pa.binary()),
        pa.array(
            [
                b'{"window":"2012-12-31T23:00:00.500Z","origin":null}',
                b'{"window":"2013-01-01T05:00:00.000Z","origin":"EWR"}',
            ],
            pa.binary(),
        ),
    ]
)
VALUES = pa.chunked_array(
    [
        pa.array(
            [
                b'{"n":2,"price":1234567890.12,"mean":1.5,"day":"2013-01-01","last":"2013-01-01T05:30:00.000Z",'
                b'"raw":"AAE=","state":{"n":2}}',
                b'{"n":0,"price":null,"mean":"NaN","day":null,"last":null,"raw":null,"state":{"n":0}}',
                None,
            ],
            pa.binary(),
        )
    ]
)


def output(**given: Any) -> GroupOutput:
    fields: dict[str, Any] = {
        "topic": "out", "format": "json", "key": None, "columns": (), "schema": GROUPS.json(), "windowed": True,
        "end": WindowEnd("until", HOUR),
    }  # fmt: skip
    return GroupOutput(**(fields | given))


def test_groups_as_avro() -> None:
    schema = StructType([*TIMES.fields, *GROUPS.fields])
    keys, values = group_records(output(format="avro", columns=tuple(schema.names)), KEYS, VALUES)
    assert keys.to_pylist() == KEYS.to_pylist()
    assert values[2].as_py() is None
    rows = decoder("avro", schema).decode(values.slice(0, 2)).columns.to_pylist()
    assert rows[0] == {
        "window": datetime(2013, 1, 1, 5, tzinfo=UTC), "until": datetime(2013, 1, 1, 6, tzinfo=UTC), "origin": "JFK",
        "n": 2, "price": Decimal("1234567890.12"), "mean": 1.5, "day": datetime(2013, 1, 1).date(),
        "last": datetime(2013, 1, 1, 5, 30, tzinfo=UTC), "raw": b"\x00\x01",
    }  # fmt: skip
    assert rows[1]["until"] == datetime(2013, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)
    assert (rows[1]["origin"], rows[1]["mean"] != rows[1]["mean"]) == (None, True)  # NaN


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        (("origin",), [b"JFK", None, b"EWR"]),
        (
            ("until", "origin"),
            [
                b'{"until":"2013-01-01T06:00:00.000000Z","origin":"JFK"}',
                b'{"until":"2013-01-01T00:00:00.500000Z","origin":null}',
                b'{"until":"2013-01-01T06:00:00.000000Z","origin":"EWR"}',
            ],
        ),
    ],
)
def test_keys_are_as_a_streams(key: tuple[str, ...], wanted: list[bytes | None]) -> None:
    keys, values = group_records(output(key=key), KEYS, VALUES)
    assert keys.to_pylist() == wanted
    assert json.loads(values[0].as_py())["until"] == "2013-01-01T06:00:00.000Z"
    assert values[2].as_py() is None


def test_a_text_alone() -> None:
    schema = StructType([StructField("k", LongType()), StructField("name", StringType())])
    text = output(format="string", columns=("name",), schema=schema.json(), windowed=False, end=None, key=("k",))
    keys = pa.array([b'{"k":1}', b'{"k":2}'], pa.binary())
    values = pa.array([b'{"name":"\\"a\\"","state":{}}', b'{"name":null,"state":{}}'], pa.binary())
    assert [each.to_pylist() for each in group_records(text, keys, values)] == [[b"1", b"2"], [b'"a"', None]]


def test_a_value_of_other_types_is_said() -> None:
    values = pa.array([b'{"n":"many","state":{}}'], pa.binary())
    with pytest.raises(StoredValueError, match=r"for topic out: b'.*many.*' of the store: "):
        group_records(output(format="avro", columns=("n",)), KEYS.slice(0, 1), values)


def test_json_has_a_windows_end_after_its_start() -> None:
    assert output_values(KEYS, VALUES, WindowEnd('"end"', HOUR)).to_pylist() == [
        b'{"window":"2013-01-01T05:00:00.000Z","\\"end\\"":"2013-01-01T06:00:00.000Z","origin":"JFK",'
        b'"n":2,"price":1234567890.12,"mean":1.5,"day":"2013-01-01","last":"2013-01-01T05:30:00.000Z","raw":"AAE="}',
        b'{"window":"2012-12-31T23:00:00.500Z","\\"end\\"":"2013-01-01T00:00:00.500Z","origin":null,'
        b'"n":0,"price":null,"mean":"NaN","day":null,"last":null,"raw":null}',
        None,
    ]
    assert len(output_values(KEYS.slice(0, 0), VALUES.slice(0, 0), WindowEnd("end", HOUR))) == 0
