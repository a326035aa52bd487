"""Windows that close and are forgotten, in a running application: epoch after epoch, and over restarts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark import StreamsApp, count, window
from kohort.spark.state import StateDirectory
from kohort.streams.tasks import TaskId
from kohort.testing.broker import Broker

from .applications import create_topics, producer, read, run_in_steps

READING = "sensor STRING, room STRING, at TIMESTAMP"
SENSORS = ("a", "d")
"""Each has a partition of its own, that of its key, and the same readings."""


@pytest.mark.parametrize(
    ("by", "restarts"),
    [
        ("room", "none"),
        pytest.param("sensor", "with its state", marks=pytest.mark.long),
        pytest.param("room", "without its state", marks=pytest.mark.long),
    ],
)
def test_each_window_is_written_once_when_it_closes(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path, by: str, restarts: str
) -> None:
    """By the stream's own key, and through a repartition topic. What is late is so after a restart, too."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "readings", "closed")
    steps = [
        (["00:10", "00:50"], []),
        (["01:05", "00:59"], []),  # the first hour's grace isn't over
        (["01:10"], [("00", 3)]),  # now it is, to the minute
        (["00:30", "00:00", "01:20"], [("00", 3)]),  # two are late
        (["03:00"], [("00", 3), ("01", 3)]),
    ]
    published: list[list[tuple[str, str, int]]] = []
    late: list[int] = []
    done = 0
    for number, some in enumerate([steps] if restarts == "none" else [steps[:2], steps[2:3], steps[3:]]):
        state = tmp_path / (str(number) if restarts == "without its state" else "state")
        app = StreamsApp("closing", bootstrap_servers=servers, state_dir=state)
        readings = app.stream("readings", schema=READING, key="sensor", event_time="at")
        grouped = readings.group_by(by, window("at", "1 hour", grace="10 minutes"))
        grouped.aggregate("counts", emit="close", n=count()).to("closed")

        def look() -> None:
            values = (json.loads(each.value()) for each in read(servers, "closed"))
            published.append(sorted((_hour(value), value[by], value["n"]) for value in values))

        heard = run_in_steps(
            app, spark, [partial(_send, servers, times) for times, _ in some], look, moved=by == "room"
        )
        late.append(heard.total("late"))
        done += len(some)
    assert done == len(steps)
    assert published == [[(hour, name, n) for hour, n in groups for name in SENSORS] for _, groups in steps]
    assert late == ([4] if restarts == "none" else [0, 0, 4])


@pytest.mark.long
def test_windows_are_forgotten_after_their_retention(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    """They are gone from the store and deleted in the changelog; so a store that is restored hasn't got them either."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "readings", "counted")
    logged: list[dict[str, int | None]] = []
    for number, steps in enumerate([[["00:10", "01:30"], ["02:59"], ["03:00"], ["00:20"]], [["03:10"]]]):
        app = StreamsApp("forgetting", bootstrap_servers=servers, state_dir=tmp_path / str(number))
        readings = app.stream("readings", schema=READING, key="sensor", event_time="at")
        windows = window("at", "1 hour", grace="10 minutes", retention="3 hours")
        readings.group_by("sensor", windows).aggregate("counts", n=count()).to("counted")

        def look() -> None:
            records = [each for each in read(servers, "forgetting-counts-changelog") if each.partition() == 0]
            last = {_hour(json.loads(each.key())): each.value() for each in records}
            logged.append({hour: None if value is None else json.loads(value)["n"] for hour, value in last.items()})

        run_in_steps(app, spark, [partial(_send, servers, times) for times in steps], look)
        assert _stored(tmp_path / str(number)) == {hour: n for hour, n in logged[-1].items() if n is not None}
    assert logged == [
        {"00": 1, "01": 1},
        {"00": 1, "01": 1, "02": 1},
        {"00": None, "01": 1, "02": 1, "03": 1},
        {"00": None, "01": 1, "02": 1, "03": 1},
        {"00": None, "01": 1, "02": 1, "03": 2},
    ]
    assert all(each.value() is not None for each in read(servers, "counted"))


def _send(servers: str, times: Sequence[str]) -> int:
    """Readings of each sensor at these times; how many."""
    sending = producer(servers)
    for partition, name in enumerate(SENSORS):
        for time in times:
            row = {"sensor": name, "room": name, "at": f"2013-01-01T{time}:00Z"}
            sending.produce("readings", json.dumps(row), key=name, partition=partition)
    sending.flush()
    return len(times) * len(SENSORS)


def _hour(group: dict[str, Any]) -> str:
    assert group["window"].startswith("2013-01-01T") and group["window"].endswith(":00:00.000Z")
    return str(group["window"][11:13])


def _stored(path: Path) -> dict[str, int]:
    """What the first task's store has, by the hour."""
    with StateDirectory(path, "forgetting") as directory:
        rows = directory.open_store(TaskId("0", 0), "counts").scan().to_pylist()
    return {_hour(json.loads(row["key"])): json.loads(row["value"])["n"] for row in rows}
