"""Stores as DataFrames: `app.store(name).read(spark)`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kohort.spark import ProgramError, StreamsApp, avg, count, max_, window
from kohort.testing.broker import Broker

from .applications import Heard, create_topics, members_of, producer, run_in_steps, run_until


def test_stores_of_an_application_that_has_stopped(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    """Aggregates with their window and types, tables with theirs; deleted keys are gone."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "flights", "airlines")
    app = StreamsApp("frames", bootstrap_servers=servers, state_dir=tmp_path)
    flights = app.stream(
        "flights", schema="carrier STRING, day DATE, delay DOUBLE, at TIMESTAMP", key="carrier", event_time="at"
    )
    airlines = app.table("airlines", schema="carrier STRING, fare DECIMAL(8, 2), since TIMESTAMP", key="carrier")
    by_hour = flights.join(airlines, how="left").group_by("day", window("at", "1 hour"))
    by_hour.aggregate("delays", n=count(), mean=avg("delay"), last=max_("at"))
    sending = producer(servers)
    for carrier, fare in (("AA", "1.50"), ("UA", "2.25"), ("XX", "3.00")):
        since = "2020-01-01T00:00:00.000001Z"
        sending.produce("airlines", json.dumps({"carrier": carrier, "fare": float(fare), "since": since}), key=carrier)
    sending.produce("airlines", None, key="XX")
    for number in range(100):
        at = f"2026-01-01T{number % 2:02}:30:00.{number:06}Z"
        flight = {"carrier": ("AA", "UA")[number % 2], "day": "2026-01-01", "delay": number / 2, "at": at}
        sending.produce("flights", json.dumps(flight), key=flight["carrier"])
    sending.flush()
    heard = Heard()

    def is_done() -> bool:
        return heard.through(100, moved=True) and heard.total("records", input="airlines") == 4

    run_until(app, spark, heard, is_done)
    assert not heard.failures

    delays = app.store("delays").read(spark)
    assert delays.schema.simpleString() == "struct<window:timestamp,day:date,n:bigint,mean:double,last:timestamp>"
    found = sorted(delays.collect(), key=lambda row: row.window)
    assert [(str(row.day), row.n, row.mean) for row in found] == [("2026-01-01", 50, 24.5), ("2026-01-01", 50, 25.0)]
    assert [row.window.astimezone(UTC).hour for row in found] == [0, 1]
    assert found[1].last.astimezone(UTC) == datetime(2026, 1, 1, 1, 30, 0, 99, UTC)
    table = app.store("airlines").read(spark)
    assert table.schema.simpleString() == "struct<carrier:string,fare:decimal(8,2),since:timestamp>"
    rows = sorted((row.carrier, str(row.fare), row.since.microsecond) for row in table.collect())
    assert rows == [("AA", "1.50", 1), ("UA", "2.25", 1)]


def test_a_store_is_read_while_its_application_runs(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    """From another thread, in the same session: each time what is committed by then, of aggregates and tables."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "flights", "airlines")
    app = StreamsApp("running-frames", bootstrap_servers=servers, state_dir=tmp_path)
    flights = app.stream("flights", schema="carrier STRING, delay INT", key="carrier")
    airlines = app.table("airlines", schema="carrier STRING, name STRING", key="carrier")
    flights.join(airlines, how="left").group_by("carrier").aggregate("delays", n=count(), worst=max_("delay"))

    def send(carrier: str, *delays: int) -> int:
        sending = producer(servers)
        for delay in delays:
            sending.produce("flights", json.dumps({"carrier": carrier, "delay": delay}), key=carrier)
        sending.flush()
        return len(delays)

    found: list[dict[str, tuple[int, int]]] = []

    def look() -> None:
        rows = app.store("delays").read(spark).collect()
        found.append({row.carrier: (row.n, row.worst) for row in rows})
        assert app.store("airlines").read(spark).collect() == []
        assert members_of(servers, "running-frames")

    steps = [partial(send, "AA", 1, 5), partial(send, "UA", 7), partial(send, "AA", 2, 9)]
    run_in_steps(app, spark, steps, look)
    assert found == [{"AA": (2, 5)}, {"AA": (2, 5), "UA": (1, 7)}, {"AA": (4, 9), "UA": (1, 7)}]


def test_stores_that_there_are_not(spark: SparkSession, tmp_path: Path) -> None:
    app = StreamsApp("none", bootstrap_servers="127.0.0.1:1", state_dir=tmp_path)
    stream = app.stream("t", schema="k STRING, n BIGINT", key="k")
    stream.group_by("k").aggregate("counts", n=count())
    stream.join(app.global_table("g", schema="k STRING", key="k"))
    with pytest.raises(ProgramError, match=r"store\('count'\): of aggregates and tables there are counts"):
        app.store("count").read(spark)
    with pytest.raises(ProgramError, match=r"store\('g'\): a global table has no changelog: read its topic"):
        app.store("g").read(spark)
