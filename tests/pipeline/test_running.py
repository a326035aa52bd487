"""A whole application in a Spark session: topics, a join, a repartition topic, stores, an output, and SIGTERM."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from pathlib import Path

import confluent_kafka
from pyspark.sql import SparkSession

from kohort.client.admin import Admin
from kohort.spark import StreamsApp, avg, count, max_, window
from kohort.spark.running.listener import EpochDone, QuietListener
from kohort.testing.broker import Broker

FLIGHT = "carrier STRING, origin STRING, dep_delay DOUBLE, time_hour TIMESTAMP"


class _Heard(QuietListener):
    def __init__(self) -> None:
        self.epochs: list[EpochDone] = []
        self.failures: list[str] = []

    def epoch(self, done: EpochDone) -> None:
        self.epochs.append(done)

    def failed(self, text: str) -> None:
        self.failures.append(text)


def test_flights(spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    asyncio.run(_topics(servers))
    app = StreamsApp("delays-app", bootstrap_servers=servers, state_dir=tmp_path)
    flights = app.stream("flights", schema=FLIGHT, key="carrier", event_time="time_hour")
    airlines = app.table("airlines", schema="carrier STRING, name STRING", key="carrier")
    late = flights.transform(lambda df: df.where("dep_delay is not null")).join(airlines, "carrier")
    by_hour = late.group_by("origin", window("time_hour", "1 hour"))
    by_hour.aggregate("delays", n=count(), mean=avg("dep_delay"), worst=max_("dep_delay")).to("delays-by-hour")

    expected = _produce(servers)
    heard, over = _Heard(), threading.Event()
    found: dict[tuple[str, str], dict[str, float]] = {}

    def watch() -> None:
        nonlocal found
        deadline = time.monotonic() + 120
        while found != expected and time.monotonic() < deadline and not heard.failures:
            if over.wait(0.5):
                return
            found = _read(servers)
        os.kill(os.getpid(), signal.SIGTERM)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        app.run(spark, listeners=[heard], progress=False)
    finally:
        over.set()
        watcher.join()
    assert not heard.failures
    assert found == expected
    assert {(each.part, each.input) for each in heard.epochs} >= {("0", "airlines"), ("0", "stream"), ("1", "stream")}
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith(("kohort-lane", "kohort-line"))]
    assert not left


async def _topics(servers: str) -> None:
    async with Admin(servers) as admin:
        await admin.topics.create("flights", partitions=2)
        await admin.topics.create("airlines", partitions=2)
        await admin.topics.create("delays-by-hour", partitions=1)


def _produce(servers: str) -> dict[tuple[str, str], dict[str, float]]:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "partitioner": "murmur2"})
    for carrier in ("AA", "UA", "DL"):
        producer.produce("airlines", json.dumps({"carrier": carrier, "name": carrier * 2}), key=carrier)
    producer.flush()
    sums: dict[tuple[str, str], list[float]] = {}
    for number in range(500):
        carrier, origin = ("AA", "UA", "DL", "XX")[number % 4], ("JFK", "LGA", "EWR")[number % 3]
        hour = f"2013-01-01T{number % 5:02}:00:00Z"
        delay = None if number % 11 == 0 else float(number % 60)
        flight = {"carrier": carrier, "origin": origin, "dep_delay": delay, "time_hour": hour}
        producer.produce("flights", json.dumps(flight), key=carrier)
        if delay is not None and carrier != "XX":
            sums.setdefault((hour.replace("Z", ".000Z"), origin), []).append(delay)
    producer.flush()
    return {
        group: {"n": len(delays), "mean": round(sum(delays) / len(delays), 9), "worst": max(delays)}
        for group, delays in sums.items()
    }


def _read(servers: str) -> dict[tuple[str, str], dict[str, float]]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "check", "isolation.level": "read_committed",
         "enable.partition.eof": True, "enable.auto.commit": False, "enable.metrics.push": False}
    )  # fmt: skip
    found = {}
    try:
        consumer.assign([confluent_kafka.TopicPartition("delays-by-hour", 0, confluent_kafka.OFFSET_BEGINNING)])
        while (message := consumer.poll(10)) is not None and message.error() is None:
            value = json.loads(message.value())
            key = value.pop("window"), value.pop("origin")
            found[key] = {**value, "mean": round(value["mean"], 9)}
    finally:
        consumer.close()
    return found
