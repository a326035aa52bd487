"""Kafka Streams as a witness: the same records through its operators, one by one, and through ours, in epochs.

Each partition is a world of its own, with records in and out of order and late ones. Where it is defined in which order
results come, or that each comes once, they are compared one by one; otherwise the last of each key are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from kohort.protocol.records.partitioner import partition_of
from kohort.spark import StreamsApp, at_most_every, count, sliding, sum_, window
from kohort.spark.testing import TestDriver
from tests.interop.java import build
from tests.interop.java.jvm import Jvm
from tests.tools import MAVEN

pytestmark = pytest.mark.timeout(build.MAVEN_S)

WORLDS = 4
EPOCHS = 4
START = 1_357_000_000_000  # a full ten seconds


@dataclass(frozen=True)
class Record:
    topic: str
    key: str
    value: str | None
    at: int


World = list[Record]


@pytest.fixture(scope="module")
def kafka_streams() -> Iterator[Jvm]:
    MAVEN.require()
    jvm = Jvm("witness", "kohort.witness.Witness", flags=["-Dorg.slf4j.simpleLogger.defaultLogLevel=error"])
    yield jvm
    jvm.close()


def keys_of(world: int, many: int) -> list[str]:
    """Keys that lie in a world's partition."""
    names = (f"k{number}" for number in range(10_000))
    return [name for name in names if partition_of(name.encode(), WORLDS) == world][:many]


def worlds(seed: int, topics: list[str], value: Callable[[random.Random], str | None], late_ms: int) -> list[World]:
    """Records whose time mostly goes on, and goes back by so much at most."""
    chosen = random.Random(seed)
    made = []
    for world in range(WORLDS):
        keys, now, records = keys_of(world, 3), START, []
        for _ in range(EPOCHS * 20):
            now += chosen.choice([0, 1, 40, 700, 2_500])
            at = now - (chosen.randrange(late_ms) if chosen.random() < 0.3 else 0)
            records.append(Record(chosen.choice(topics), chosen.choice(keys), value(chosen), at))
        made.append(records)
    return made


def witnessed(jvm: Jvm, case: str, parameters: dict[str, object], given: list[World]) -> list[list[dict[str, Any]]]:
    """What Kafka Streams gives for each world: key, value, at."""
    asked = [[vars(record) for record in world] for world in given]
    answer: list[list[dict[str, Any]]] = jvm.ask({"case": case, "parameters": parameters, "worlds": asked}, 120)
    return answer


def ours(app: StreamsApp, start: Callable[..., TestDriver], given: list[World]) -> list[dict[str, Any]]:
    """What our program gives for all worlds: rows of its topic `out`. An epoch takes some records of each."""
    driver = start(app, partitions=WORLDS)
    some = len(given[0]) // EPOCHS
    rows: list[dict[str, Any]] = []
    for first in range(0, len(given[0]), some):
        for world, records in enumerate(given):
            for record in records[first : first + some]:
                row = None if record.value is None else {"k": record.key, "v": record.value, "at": record.at}
                driver.pipe(record.topic, [row], key=record.key, at=record.at, partition=world, step=False)
        driver.step()
        rows += driver.output("out")
    return rows


def numbers(chosen: random.Random) -> str:
    return str(chosen.randrange(100))


SCHEMA = "k STRING, v STRING, at TIMESTAMP"


def stream_of(app: StreamsApp, topic: str) -> Any:
    return app.stream(topic, schema=SCHEMA, key="k", event_time="at", timestamp_format="timestamp_millis")


def millis(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize("emit", ["update", "close"])
@pytest.mark.parametrize("advance", [10_000, 5_000])
def test_windows(kafka_streams: Jvm, kohort_test_driver: Any, emit: str, advance: int) -> None:
    given = worlds(advance, ["stream"], numbers, 20_000)
    parameters = {"size": 10_000, "advance": advance, "grace": 3_000, "emit": emit}
    wanted = [record for world in witnessed(kafka_streams, "windows", parameters, given) for record in world]
    app = StreamsApp("windows")
    rows = stream_of(app, "stream").with_columns(v=F.col("v").cast("long"))
    by = rows.group_by("k", window("at", "10 seconds", slide=f"{advance} ms", grace="3 seconds"))
    by.aggregate("sums", emit=emit, n=count(), total=sum_("v")).to("out")
    results = [
        (f"{row['k']}@{millis(row['window'])}", f"{row['n']},{row['total']}")
        for row in ours(app, kohort_test_driver, given)
    ]
    expected = [(record["key"], record["value"]) for record in wanted]
    if emit == "close":
        assert sorted(results) == sorted(expected)
    assert dict(results) == dict(expected)


def test_sliding_windows(kafka_streams: Jvm, kohort_test_driver: Any) -> None:
    """None of the records is so late that the window is closed that ends with it."""
    given = worlds(2, ["stream"], numbers, 3_000)
    parameters = {"difference": 10_000, "grace": 3_000, "emit": "update"}
    wanted = [record for world in witnessed(kafka_streams, "sliding", parameters, given) for record in world]
    app = StreamsApp("sliding")
    rows = stream_of(app, "stream").with_columns(v=F.col("v").cast("long"))
    by = rows.group_by("k", sliding("at", "10 seconds", grace="3 seconds"))
    by.aggregate("sums", n=count(), total=sum_("v")).to("out")
    results = {
        f"{row['k']}@{millis(row['window'])}": f"{row['n']},{row['total']}"
        for row in ours(app, kohort_test_driver, given)
    }
    assert results == {record["key"]: record["value"] for record in wanted}


def test_aggregates_that_wait(kafka_streams: Jvm, kohort_test_driver: Any) -> None:
    given = worlds(3, ["stream"], numbers, 20_000)
    # What waits at the end comes when time has passed it.
    end = max(record.at for world in given for record in world) + 100_000
    for number, world in enumerate(given):
        world.append(Record("stream", keys_of(number, 4)[3], "0", end))
    parameters = {"limit": 5_000}
    wanted = [record for world in witnessed(kafka_streams, "suppressed", parameters, given) for record in world]
    app = StreamsApp("waiting")
    rows = stream_of(app, "stream").with_columns(v=F.col("v").cast("long"))
    rows.group_by("k").aggregate("sums", emit=at_most_every("5 seconds"), n=count(), total=sum_("v")).to("out")
    results = [(row["k"], f"{row['n']},{row['total']}") for row in ours(app, kohort_test_driver, given)]
    expected = [(record["key"], record["value"]) for record in wanted]
    assert dict(results) == dict(expected)
    assert len(results) <= len(expected)


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
def test_joins_of_streams(kafka_streams: Jvm, kohort_test_driver: Any, how: Any) -> None:
    """None of the records is late: time is how far the first stream is in Kafka Streams, and here how far both are."""
    given = worlds(1, ["left", "right"], numbers, 4_000)
    parameters = {"how": how, "before": 2_000, "after": 1_000, "grace": 10_000}
    # Rows without a match come when time has passed them: those of the end, when something comes long after.
    end = max(record.at for world in given for record in world) + 1_000_000
    for number, world in enumerate(given):
        key = keys_of(number, 4)[3]
        world += [Record(topic, key, "0", end + at) for at in (0, 20_000) for topic in ("left", "right")]
    wanted = [record for world in witnessed(kafka_streams, "stream_join", parameters, given) for record in world]
    app = StreamsApp("joined")
    left = stream_of(app, "left").select("k", "v AS l", "at")
    right = stream_of(app, "right").select("k", "v AS r", "at AS other")
    joined = left.join_stream(right, on="k", before="2 seconds", after="1 second", grace="10 seconds", how=how)
    joined.to("out")
    found = [
        (row["k"], f"{row.get('l')}|{row.get('r')}".replace("None", "null"))
        for row in ours(app, kohort_test_driver, given)
    ]
    assert sorted(found) == sorted((record["key"], record["value"]) for record in wanted)
