"""Formats in running applications, with records that aren't of them: in streams, tables and repartition topics."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark import DeadLetter, Drop, StreamsApp, count, sum_
from kohort.testing.broker import Broker

from .applications import Heard, create_topics, producer, read, run_until

WRITTEN: dict[str, Any] = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "note", "type": ["null", "string"]},  # which nobody reads
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "sensor", "type": "string"},
        {"name": "celsius", "type": ["null", "double"]},
    ],
}
PUBLISHED: dict[str, Any] = {
    "type": "record",
    "name": "Heat",
    "fields": [
        {"name": "sensor", "type": "string"},
        {"name": "fahrenheit", "type": ["null", "double"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}


@pytest.mark.long
def test_avro_goes_in_and_avro_text_and_bytes_come_out(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "readings", "heat", "plain", "texts", "blobs", "graves")
    rows = [
        {
            "note": None if number % 2 else "ä", "at": datetime(2013, 1, 1, 0, number, tzinfo=UTC),
            "sensor": "ab"[number % 2], "celsius": None if number == 3 else 10.0 * number,
        }
        for number in range(6)
    ]  # fmt: skip
    good = [_written(row) for row in rows]
    bad = [good[0][:-3], good[1] + b"\0", b"", b"\x07"]
    sending = producer(servers)
    for number, value in enumerate([*good[:3], *bad, *good[3:]]):
        sending.produce("readings", value, b"key", partition=number % 2)
    sending.flush()

    app = StreamsApp("converting", bootstrap_servers=servers, state_dir=tmp_path)
    readings = app.stream(
        "readings", format="avro", avro_schema=json.dumps(WRITTEN), event_time="at",
        schema="sensor STRING, celsius DOUBLE, at TIMESTAMP", on_error=DeadLetter("graves"),
    )  # fmt: skip
    heat = readings.transform(
        lambda df: df.select("sensor", (df["celsius"] * 1.8 + 32).alias("fahrenheit"), "at", "_partition")
    )
    heat.to("heat", key="sensor", format="avro", schema=json.dumps(PUBLISHED)).to("plain", format="avro")
    heat.transform(lambda df: df.select("sensor", F.date_format("at", "mm").alias("minute"))).to(
        "texts", key="sensor", format="string"
    )
    heat.transform(lambda df: df.select(F.encode(F.concat("sensor", F.lit("\0")), "utf-8").alias("value"))).to(
        "blobs", format="raw"
    )
    heard = Heard()
    run_until(app, spark, heard, lambda: heard.through(len(good) + len(bad)))
    assert not heard.failures

    def fahrenheit(row: dict[str, Any]) -> float | None:
        return None if row["celsius"] is None else row["celsius"] * 1.8 + 32

    wanted = [{"sensor": row["sensor"], "fahrenheit": fahrenheit(row), "at": row["at"]} for row in rows]
    found = [(one.key(), _avro(one.value(), PUBLISHED)) for one in read(servers, "heat")]
    assert sorted(found, key=str) == sorted(((row["sensor"].encode(), row) for row in wanted), key=str)
    # Without a schema it is the one that Spark would write with: every column may be null.
    nullable = [
        {"name": "sensor", "type": ["string", "null"]},
        {"name": "fahrenheit", "type": ["double", "null"]},
        {"name": "at", "type": [{"type": "long", "logicalType": "timestamp-micros"}, "null"]},
    ]
    plain = [
        _avro(one.value(), {"type": "record", "name": "topLevelRecord", "fields": nullable})
        for one in read(servers, "plain")
    ]
    assert sorted(plain, key=str) == sorted(wanted, key=str)
    texts = sorted((one.value(), one.key()) for one in read(servers, "texts"))
    assert texts == [(b"%02d" % number, row["sensor"].encode()) for number, row in enumerate(rows)]
    assert (
        sorted((one.value(), one.key()) for one in read(servers, "blobs"))
        == [(b"a\0", None)] * 3 + [(b"b\0", None)] * 3
    )
    assert sorted(one.value() for one in read(servers, "graves")) == sorted(bad)
    assert heard.total("dropped") == len(bad)


@pytest.mark.long
def test_bad_records_of_a_table_are_dropped(spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path) -> None:
    """The others are joined; a key whose last record is bad keeps the one before."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "readings", "sensors", "named")
    sensors = [
        (b"a", b'{"sensor": "a", "place": "roof"}'),
        (b"b", b'["b", "cellar"]'),
        (b"c", b'{"sensor": "c", "place": "garden"}'),
        (b"a", b'{"sensor": "a", '),
        (b"c", b"\xff"),
        (b"c", b'{"sensor": "c", "place": "pond"}'),
    ]
    sending = producer(servers)
    for key, value in sensors:
        sending.produce("sensors", value, key)
    sending.flush()
    for key in "abc":
        sending.produce("readings", json.dumps({"sensor": key, "n": 1}), key)
    sending.flush()
    app = StreamsApp("naming", bootstrap_servers=servers, state_dir=tmp_path)
    table = app.table("sensors", schema="sensor STRING, place STRING", key="sensor", on_error=Drop())
    readings = app.stream("readings", schema="sensor STRING, n INT", key="sensor")
    readings.join(table, "sensor", "left").to("named")
    heard = Heard()
    run_until(app, spark, heard, lambda: heard.through(3))
    assert not heard.failures
    named = {value["sensor"]: value["place"] for value in (json.loads(one.value()) for one in read(servers, "named"))}
    assert named == {"a": "roof", "b": None, "c": "pond"}
    assert (heard.total("dropped", input="sensors"), heard.total("dropped")) == (3, 3)


@pytest.mark.long
@pytest.mark.parametrize("rows", ["combined", "as they are"])
def test_what_is_repartitioned_and_counted_is_what_could_be_read(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path, rows: str
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "readings", "counted")
    good = [b'{"room": "%s", "n": %d}' % (b"xyz"[number % 3 :][:1], number) for number in range(30)]
    bad = [b'{"room": "x", "n": "1"}', b'{"room": "x", "n": null}', b'{"room": "x"}', b'{"room": "x", "n": 1', b""]
    sending = producer(servers)
    for number, value in enumerate([*good[:10], *bad, *good[10:]]):
        sending.produce("readings", value, b"key", partition=number % 2)
    sending.flush()
    app = StreamsApp("counting", bootstrap_servers=servers, state_dir=tmp_path, on_error=Drop())
    readings = app.stream("readings", schema="room STRING, n INT NOT NULL")
    if rows == "as they are":
        readings = readings.repartition("room")
    readings.group_by("room").aggregate("counts", records=count(), sum=sum_("n")).to("counted")
    heard = Heard()
    run_until(app, spark, heard, lambda: heard.through(len(good) + len(bad), moved=True))
    assert not heard.failures
    groups = {value["room"]: value for value in (json.loads(one.value()) for one in read(servers, "counted"))}
    assert groups == {
        room: {"room": room, "records": 10, "sum": sum(range(number, 30, 3))} for number, room in enumerate("xyz")
    }
    assert (heard.total("dropped", subtopology="0"), heard.total("dropped")) == (len(bad), len(bad))


def _written(row: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, WRITTEN, row)
    return out.getvalue()


def _avro(value: bytes, schema: dict[str, Any]) -> Any:
    source = io.BytesIO(value)
    found = fastavro.schemaless_reader(source, schema, None)
    assert source.tell() == len(value)
    return found
