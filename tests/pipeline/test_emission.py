"""Aggregates whose groups are written once in a time at most."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark import ProgramError, StreamsApp, at_most_every, count, max_, session, sliding, sum_, window
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


WINDOWS = {
    "tumbling": window("at", "20 seconds", grace="5 seconds", retention="1 minute"),
    "hopping": window("at", "20 seconds", slide="10 seconds", grace="5 seconds", retention="1 minute"),
    "sliding": sliding("at", "20 seconds", grace="5 seconds", retention="1 minute"),
}


@pytest.mark.parametrize("kind", WINDOWS)
def test_a_groups_windows_are_written_once_in_a_time(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Beside an aggregate that is written with each change. What an hour is too long for goes with its window."""
    app = StreamsApp("calm", state_dir=tmp_path)
    readings = app.stream("readings", schema=READING, key="sensor", event_time="at")
    grouped = readings.group_by("sensor", WINDOWS[kind])
    results = {"n": count(), "total": sum_("level")}
    grouped.aggregate("each", **results).to("each")
    waits = {"calm": 10, "slow": 3_600}
    for name, every in waits.items():
        grouped.aggregate(name, emit=at_most_every(f"{every} seconds"), **results).to(name)
    chosen, now = random.Random(1), datetime(2013, 1, 1, tzinfo=UTC)

    def changes(topic: str) -> list[tuple[bytes, bytes, int]]:
        """Keys, values and times (ms), without those of the last row."""
        records = driver.records(topic)
        times = records["timestamp"].cast("int64").to_pylist()
        rows = zip(records["key"].to_pylist(), records["value"].to_pylist(), times, strict=True)
        return [row for row in rows if b'"c"' not in row[0]]

    with TestDriver(app, spark) as driver:
        for _ in range(6):
            rows = []
            for _ in range(8):
                now += timedelta(seconds=chosen.randrange(4))
                at = now - timedelta(seconds=chosen.randrange(4))
                rows.append({"sensor": chosen.choice("ab"), "room": "r", "level": chosen.randrange(9), "at": at})
            driver.pipe("readings", rows)
        before = {name: len(changes(name)) for name in waits}
        # All windows of then are removed: none waits any more.
        driver.pipe("readings", [{"sensor": "c", "room": "r", "level": 0, "at": now + timedelta(minutes=10)}])
        each = changes("each")
        for name, every in waits.items():
            calm = changes(name)
            assert before[name] < len(calm) < len(each)
            assert dict(driver.store(name)) == dict(driver.store("each"))
            assert all("c" in key for key in driver.store(name))
            assert {row[:2] for row in calm} <= {row[:2] for row in each}
            assert {key: value for key, value, _ in calm} == {key: value for key, value, _ in each}
            for wanted in {key for key, _, _ in calm}:
                times = [time for key, _, time in calm if key == wanted]
                assert len(times) == 1 or name == "calm"
                # The last one may come early, before its window is removed.
                assert all(later - one >= 1_000 * every for one, later in pairwise(times[:-1]))


ITEM = "id BIGINT, kind STRING, price BIGINT"
START = 1_356_998_400_000


def test_a_group_of_a_table_is_written_once_in_a_time_with_what_left_it(spark: SparkSession, tmp_path: Path) -> None:
    """By another column than the table's key, through a topic; a row that moves leaves one group for another."""
    app = StreamsApp("calm", bootstrap_servers="localhost:9092", state_dir=tmp_path)
    items = app.table("items", schema=ITEM, key="id")
    kinds = items.group_by("kind").aggregate("kinds", at_most_every("10 seconds"), n=count(), total=sum_("price"))
    kinds.to("kinds", key="kind")
    kinds.as_table().where("n > 1").to("many")

    def pipe(second: int, *rows: tuple[int, str | None, int]) -> None:
        there = [{"id": each, "kind": kind, "price": price} for each, kind, price in rows]
        driver.pipe("items", there, at=START + 1000 * second)

    def written(topic: str) -> list[tuple[str, Any]]:
        records = driver.records(topic)
        values = [value and json.loads(value) for value in records["value"].to_pylist()]
        return [(key.decode(), value) for key, value in zip(records["key"].to_pylist(), values, strict=True)]

    with TestDriver(app, spark) as driver:
        pipe(0, (1, "a", 5), (2, "a", 7))
        pipe(3, (2, "b", 7), (3, "a", 1))
        pipe(5, (4, "c", 9))
        driver.delete("items", {"id": 1}, at=START + 6000)
        assert written("kinds") == []
        pipe(10, (5, "a", 2))
        a = {"kind": "a", "n": 2, "total": 3}
        assert written("kinds") == [("a", a)] and written("many") == [("a", a)]
        driver.delete("items", {"id": 2}, {"id": 4}, at=START + 11_000)
        pipe(15, (3, "a", 4))
        assert dict(written("kinds")) == {"a": a, "b": None, "c": None}  # tombstones, though nothing was there
        assert dict(driver.store("kinds")) == {"a": {"n": 2, "total": 6}}
        pipe(30, (6, "z", 1))
        assert written("kinds")[-1] == ("a", {"kind": "a", "n": 2, "total": 6})
        assert [value for key, value in written("kinds") if key == "z"] == []


def test_a_table_grouped_by_its_key_waits_too(spark: SparkSession, tmp_path: Path) -> None:
    app = StreamsApp("calm", bootstrap_servers="localhost:9092", state_dir=tmp_path)
    items = app.table("items", schema=ITEM, key="id")
    items.group_by("id").aggregate("ids", emit=at_most_every("10 seconds"), total=sum_("price")).to("ids", key="id")
    with TestDriver(app, spark) as driver:
        for second, price in ((0, 5), (1, 6), (10, 7), (12, 8)):
            row = {"id": 1, "kind": "a", "price": price}
            driver.pipe("items", [row], at=START + 1000 * second)
        assert [row["total"] for row in driver.output("ids")] == [7]


def test_what_waits_stands_in_the_description(spark: SparkSession, tmp_path: Path) -> None:
    app = an_app("localhost:9092", tmp_path)
    described = app.describe(spark)
    assert "(stores: [sensors-waiting])" in described and "KTABLE-SUPPRESS" in described
    assert "calm-rooms-waiting-changelog" in app.compile(spark).internal_topics


def test_other_times_are_refused() -> None:
    readings = StreamsApp("refused").stream("readings", schema=READING).group_by("sensor")
    with pytest.raises(ProgramError, match=r'emit=.final.\): "update", "close" or at_most_every\("10 seconds"\)'):
        readings.aggregate("sensors", emit="final", n=count())  # type: ignore[arg-type]
    visits = StreamsApp("refused").stream("readings", schema=READING, key="sensor", event_time="at")
    by_visit = visits.group_by("sensor", session("at", "10 seconds", grace="5 seconds"))
    with pytest.raises(ProgramError, match='sessions become one: say "update" or "close"'):
        by_visit.aggregate("visits", emit=at_most_every("10 seconds"), n=count())
    with pytest.raises(ProgramError, match="at_most_every='soon' is no length of time"):
        at_most_every("soon")
    items = StreamsApp("refused").table("items", schema=ITEM, key="id").group_by("kind")
    with pytest.raises(ProgramError, match=r"groups are never complete: say .update. or at_most_every"):
        items.aggregate("kinds", emit="close", n=count())
