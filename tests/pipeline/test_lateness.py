"""What is late is a property of the records: the same however they fall into epochs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kohort.spark import StreamsApp, count, window
from kohort.testing.broker import Broker

from .applications import create_topics, producer, read, run_in_steps

READING = "sensor STRING, room STRING, at TIMESTAMP"


@pytest.mark.parametrize("by", ["sensor", "room"])
@pytest.mark.parametrize("most", [400_000, 1])
def test_a_record_is_late_by_those_before_it(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path, by: str, most: int
) -> None:
    """Be they in its own epoch or in one before; by the stream's own key, and through a repartition topic."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "readings", "counted")

    def send() -> int:
        sending = producer(servers)
        for time in ("10:01", "10:40", "10:02", "10:44", "never"):
            row = {"sensor": "a", "room": "r", "at": None if time == "never" else f"2013-01-01T{time}:00Z"}
            sending.produce("readings", json.dumps(row), key="a")
        sending.flush()
        return 5

    app = StreamsApp("lateness", bootstrap_servers=servers, state_dir=tmp_path, max_epoch_records=most)
    readings = app.stream("readings", schema=READING, key="sensor", event_time="at")
    grouped = readings.group_by(by, window("at", "10 minutes", grace="5 minutes"))
    grouped.aggregate("counts", n=count()).to("counted")
    heard = run_in_steps(app, spark, [send], moved=by == "room")
    values = [json.loads(each.value()) for each in read(servers, "counted")]
    assert {value["window"][11:16]: value["n"] for value in values} == {"10:00": 1, "10:40": 2}
    assert heard.total("late") == 1
    assert [each.reasons for each in heard.epochs if each.reasons] == [{"no window": 1}]
    assert sum(each.part == "0" for each in heard.epochs) == (5 if most == 1 else 1)
