"""The test driver beside an application in its group, with a broker: equal records make equal state and output."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from kohort.spark import Drop, StreamsApp, avg, count, max_, window
from kohort.spark.program.compiled import TopicInput
from kohort.spark.testing import TestDriver
from kohort.testing.broker import Broker

from .applications import create_topics, producer, read, run_in_steps

FLIGHT = "carrier STRING, origin STRING, dep_delay DOUBLE, time_hour TIMESTAMP"
FIRST = datetime(2013, 1, 1, tzinfo=UTC)


def application(servers: str, state_dir: Path) -> StreamsApp:
    """Joins of tables and streams, repartitions, windows that close and are forgotten, aggregates of aggregates."""
    app = StreamsApp("both", bootstrap_servers=servers, state_dir=state_dir, on_error=Drop())
    flights = app.stream("flights", schema=FLIGHT, key="carrier", event_time="time_hour")
    airlines = app.table("airlines", schema="carrier STRING, name STRING", key="carrier")
    late = flights.transform(lambda df: df.where("dep_delay > 0")).join(airlines, "carrier")
    hour = window("time_hour", "1 hour", grace="1 hour", retention="6 hours")
    closed = late.group_by("origin", hour).aggregate("closed", n=count(), mean=avg("dep_delay"), emit="close")
    closed.to("closed")
    closed.as_stream().group_by("origin").aggregate("hours", n=count()).to("hours")
    late.group_by("origin", hour).aggregate("hourly", worst=max_("dep_delay")).to("hourly")
    flights.group_by("carrier").aggregate("by-carrier", n=count()).to("by-carrier")
    late.to("late")
    gates = app.stream("gates", schema="carrier STRING, gate STRING, at TIMESTAMP", event_time="at")
    flown = flights.transform(lambda df: df.select("carrier", "origin", "time_hour"))
    gates.join_stream(flown, on="carrier", within="30 minutes", grace="1 hour").to("gated")
    return app


def batches(seed: int) -> list[tuple[str, list[dict[str, Any] | bytes | None], list[str]]]:
    """What is sent, step by step: (topic, rows, keys). Times go on, some far back; some rows can't be read."""
    random = Random(seed)
    carriers = ["AA", "UA", "DL"]
    steps: list[tuple[str, list[dict[str, Any] | bytes | None], list[str]]] = []
    for step in range(4):
        named: list[dict[str, Any] | bytes | None] = [
            None if random.random() < 0.3 else {"carrier": each, "name": f"{each} {step}"} for each in carriers
        ]
        steps.append(("airlines", named, carriers))
        flights: list[dict[str, Any] | bytes | None] = []
        keys = []
        for _ in range(40):
            carrier = random.choice([*carriers, "XX"])
            time = FIRST + timedelta(hours=2 * step, minutes=random.randrange(-300, 60))
            row = {"carrier": carrier, "origin": random.choice(["JFK", "LGA"]), "time_hour": time.isoformat()}
            flights.append(b"oops" if random.random() < 0.05 else {**row, "dep_delay": float(random.randrange(-9, 60))})
            keys.append(carrier)
        steps.append(("flights", flights, keys))
        times = [FIRST + timedelta(hours=2 * step, minutes=random.randrange(-90, 60)) for _ in carriers]
        gates: list[dict[str, Any] | bytes | None] = [
            {"carrier": carrier, "gate": f"{carrier}{step}", "at": time}
            for carrier, time in zip(carriers, times, strict=True)
        ]
        steps.append(("gates", gates, carriers))
    return steps


def test_both_have_the_same_stores_and_outputs(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "flights", "airlines", "gates", *ROWS, *GROUPS)
    app = application(servers, tmp_path)

    with TestDriver(app, spark, partitions=2) as driver:
        sent = []
        for topic, rows, keys in batches(1):
            before = driver.records(topic).num_rows
            driver.pipe(topic, rows, key=keys)
            sent.append((topic, driver.records(topic).slice(before)))
        stores = {name: last_of_each_key(driver.records(f"both-{name}-changelog")) for name in STORES}
        written = {name: driver.records(name) for name in (*ROWS, *GROUPS)}
        assert {row["key"]: row["value"] for row in driver.store("hourly").raw.to_pylist()} == stores["hourly"]
        late, dropped = driver.late, driver.dropped
    assert late and dropped == {"unreadable": dropped["unreadable"]}

    sending = producer(servers)

    def send(topic: str, records: pa.Table) -> int:
        for row in records.to_pylist():
            millis = round(row["timestamp"].timestamp() * 1000)
            sending.produce(topic, row["value"], row["key"], row["partition"], timestamp=millis)
        sending.flush()
        return 0 if topic == "airlines" else records.num_rows

    sources = [each.id for each in app.compile(spark).subtopologies if isinstance(each.input, TopicInput)]
    steps = [lambda topic=topic, records=records: send(topic, records) for topic, records in sent]
    heard = run_in_steps(app, spark, steps, moved=True, sources=sources)

    assert heard.total("late") == late
    assert heard.total("dropped") == sum(dropped.values())
    for name in STORES:
        assert changelog(servers, f"both-{name}-changelog") == stores[name], name
    for name in ROWS:
        theirs = sorted((each.key() or b"", each.value()) for each in read(servers, name))
        ours = written[name].select(["key", "value"]).to_pylist()
        assert sorted((row["key"] or b"", row["value"]) for row in ours) == theirs, name
    for name in GROUPS:
        assert changelog(servers, name) == last_of_each_key(written[name]), name
    assert all(written[name].num_rows for name in (*ROWS, *GROUPS))


STORES = ("airlines", "by-carrier", "closed", "hours", "hourly")
ROWS = ("closed", "late", "gated")
GROUPS = ("hourly", "by-carrier", "hours")


def last_of_each_key(records: pa.Table) -> dict[bytes, bytes]:
    rows = records.select(["key", "value"]).to_pylist()
    return {key: value for key, value in {row["key"]: row["value"] for row in rows}.items() if value is not None}


def changelog(servers: str, topic: str) -> dict[bytes, bytes]:
    last = {each.key() or b"": each.value() for each in read(servers, topic)}
    return {key: value for key, value in last.items() if value is not None}
