"""Aggregates whose groups are written once in a time at most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark import ProgramError, StreamsApp, at_most_every, count, max_, window
from kohort.spark.testing import TestDriver

READING = "sensor STRING, room STRING, level INT, at TIMESTAMP"


def an_app(servers: str, state: Path) -> StreamsApp:
    """By the stream's key, in its own tasks; and by another, through a repartition topic."""
    app = StreamsApp("calm", bootstrap_servers=servers, state_dir=state)
    readings = app.stream("readings", schema=READING, key="sensor", event_time="at")
    by_sensor = readings.group_by("sensor").aggregate("sensors", emit=at_most_every("10 seconds"), n=count())
    by_sensor.to("sensors", key="sensor")
    by_room = readings.group_by("room", window("at", "1 minute"))
    rooms = by_room.aggregate("rooms", emit=at_most_every("10 seconds"), most=max_("level"))
    rooms.as_stream().to("rooms", key="room")
    return app


def reading(sensor: str, room: str, level: int, second: int) -> dict[str, Any]:
    return {"sensor": sensor, "room": room, "level": level, "at": f"2013-01-01T00:00:{second:02}Z"}


def test_a_group_is_written_once_in_a_time(spark: SparkSession, tmp_path: Path) -> None:
    def written() -> tuple[list[Any], list[Any]]:
        sensors = [(row["sensor"], row["n"]) for row in driver.output("sensors")]
        return sensors, [(row["room"], row["most"]) for row in driver.output("rooms")]

    with TestDriver(an_app("localhost:9092", tmp_path), spark) as driver:
        driver.pipe("readings", [reading("a", "hall", 1, 0), reading("a", "hall", 7, 1)])
        driver.pipe("readings", [reading("a", "hall", 3, 5), reading("b", "attic", 2, 8)])
        assert written() == ([], [])
        driver.pipe("readings", [reading("b", "attic", 1, 11)])
        assert written() == ([("a", 3)], [("hall", 7)])
        assert driver.store("sensors")["b"]["n"] == 2
        driver.pipe("readings", [reading("a", "hall", 9, 20)])
        assert written() == ([("b", 2)], [("attic", 2)])
        driver.pipe("readings", [reading("c", "attic", 5, 30)])
        assert written() == ([("a", 4)], [("hall", 9)])


def test_what_waits_stands_in_the_description(spark: SparkSession, tmp_path: Path) -> None:
    app = an_app("localhost:9092", tmp_path)
    described = app.describe(spark)
    assert "(stores: [sensors-waiting])" in described and "KTABLE-SUPPRESS" in described
    assert "calm-rooms-waiting-changelog" in app.compile(spark).internal_topics


def test_other_times_are_refused() -> None:
    readings = StreamsApp("refused").stream("readings", schema=READING).group_by("sensor")
    with pytest.raises(ProgramError, match=r'emit=.final.\): "update", "close" or at_most_every\("10 seconds"\)'):
        readings.aggregate("sensors", emit="final", n=count())  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="at_most_every='soon' is no length of time"):
        at_most_every("soon")
