"""Times as producers write them, in a running application: numbers since 1970, patterns, and records' own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from kohort.spark import DeadLetter, StreamsApp, count, max_, window
from kohort.spark.formats import decoder
from kohort.spark.formats.times import TimeFormats
from kohort.testing.broker import Broker

from .applications import Heard, create_topics, producer, read, run_until

FIVE_MS = 1_357_016_400_000
"""2013-01-01T05:00:00Z."""


def test_milliseconds_patterns_and_the_records_own_time(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "bids", "sales", "sellers", "by-auction", "by-price", "named", "graves")
    bids = [
        {"auction": number % 2, "price": 10 + number % 3, "dateTime": FIVE_MS + number * 60_000}
        for number in range(120)
    ]
    sending = producer(servers)
    bad = json.dumps({"auction": 1, "price": 1, "dateTime": "2013-01-01T05:00:00Z"})
    for value in (*map(json.dumps, bids), bad):
        sending.produce("bids", value, str(json.loads(value)["auction"]))
    sending.produce("sellers", json.dumps({"seller": 1, "since": "01.01.2013 00:30"}), "1")
    sale = {"seller": 1, "ms": FIVE_MS, "s": FIVE_MS // 1000}
    sending.produce("sales", json.dumps(sale), "1", timestamp=FIVE_MS + 3_600_500)
    sending.flush()

    app = StreamsApp("auctions", bootstrap_servers=servers, state_dir=tmp_path)
    stream = app.stream(
        "bids", schema="auction BIGINT, price BIGINT, dateTime TIMESTAMP", key="auction", event_time="dateTime",
        timestamp_format="timestamp_millis", on_error=DeadLetter("graves"),
    )  # fmt: skip
    hours = window("dateTime", "1 hour", grace="10 minutes")
    stream.group_by("auction", hours).aggregate("by-auction", n=count()).to("by-auction")
    stream.group_by("price", hours).aggregate("by-price", n=count(), last=max_("dateTime")).to("by-price")
    sellers = app.global_table(
        "sellers", schema="seller BIGINT, since TIMESTAMP", key="seller", timestamp_format="dd.MM.yyyy HH:mm",
        time_zone="Europe/Berlin",
    )  # fmt: skip
    sales = app.stream(
        "sales", schema="seller BIGINT, ms BIGINT, s BIGINT, _timestamp TIMESTAMP", key="seller",
        event_time=F.timestamp_millis("ms").alias("at"),
    )  # fmt: skip
    sales = sales.join(sellers, "seller")
    sales.to("named")
    counted = sales.group_by("seller", window("at", "1 hour", grace="1 minute")).aggregate("by-seller", n=count())
    assert counted
    heard = Heard()

    def is_done() -> bool:
        told = sum(_last(read(servers, "by-price"), "price").values())
        return heard.through(len(bids) + 1) and told == len(bids) and len(read(servers, "named")) == 1

    run_until(app, spark, heard, is_done)
    assert not heard.failures

    assert _last(read(servers, "by-auction"), "auction") == {
        (hour, each): 30 for hour in ("05", "06") for each in (0, 1)
    }
    assert _last(read(servers, "by-price"), "price") == {
        (hour, 10 + each): 20 for hour in ("05", "06") for each in range(3)
    }
    (grave,) = read(servers, "graves")
    headers = dict(grave.headers())
    assert headers["__streams.errors.message"].decode() == (
        'dateTime: a time in milliseconds since 1970 is wanted, not "2013-01-01T05:00:00Z"'
    )
    (named,) = read(servers, "named")
    assert named.timestamp()[1] == FIVE_MS
    value = json.loads(named.value())
    assert {name: value[name] for name in ("at", "since", "_timestamp")} == {
        "at": "2013-01-01T05:00:00.000Z", "since": "2012-12-31T23:30:00.000Z", "_timestamp": "2013-01-01T06:00:00.500Z",
    }  # fmt: skip


def _last(records: list[Any], by: str) -> dict[tuple[str, int], int]:
    values = [json.loads(record.value()) for record in records]
    return {(value["window"][11:13], value[by]): value["n"] for value in values}


def test_patterns_and_zones_are_read_as_spark_does(spark: SparkSession) -> None:
    """The hour that clocks leave out, the one that they show twice, and every other kind of text."""
    texts = [
        f"2013-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:01"
        for month, day in ((3, 10), (3, 31), (7, 1), (10, 27), (11, 3), (12, 31))
        for hour in range(24)
        for minute in (0, 30)
    ]
    schema = T.StructType([T.StructField("at", T.TimestampType())])
    values = [json.dumps({"at": text}) for text in texts]
    rows = spark.createDataFrame([(value,) for value in values], "value string")
    for zone in ("America/New_York", "Europe/Berlin", "+05:30"):
        options = {"timestampFormat": "yyyy-MM-dd HH:mm:ss", "timeZone": zone}
        wanted = rows.select(F.from_json("value", schema, options).alias("x")).select("x.at").toArrow()
        times = TimeFormats((("", "yyyy-MM-dd HH:mm:ss"),), zone)
        found = decoder("json", schema, times=times).decode(pa.array([each.encode() for each in values]))
        assert not found.errors
        assert found.columns.column(0).to_pylist() == wanted["at"].to_pylist()
