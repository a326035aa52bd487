"""Kafka Streams as a witness: the same records through its operators, one by one, and through ours, in epochs.

Each partition is a world of its own, with records in and out of order and late ones. Where it is defined in which order
results come, or that each comes once, they are compared one by one; otherwise the last of each key are.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from kohort.protocol.records.partitioner import partition_of
from kohort.spark import StreamsApp, at_most_every, count, session, sliding, sum_, window
from kohort.spark.testing import TestDriver
from tests.interop.java import build
from tests.interop.java.jvm import Jvm
from tests.marks import long
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


Value = Callable[[random.Random, int], str | None]
"""Draws a value of a world's; None deletes."""


def worlds(seed: int, topics: list[str], value: Value, late_ms: int) -> list[World]:
    """Records whose time mostly goes on, and goes back by so much at most."""
    chosen = random.Random(seed)
    made = []
    for world in range(WORLDS):
        keys, now, records = keys_of(world, 3), START, []
        for _ in range(EPOCHS * 20):
            now += chosen.choice([0, 1, 40, 700, 2_500])
            at = now - (chosen.randrange(late_ms) if chosen.random() < 0.3 else 0)
            records.append(Record(chosen.choice(topics), chosen.choice(keys), value(chosen, world), at))
        made.append(records)
    return made


def witnessed(jvm: Jvm, case: str, parameters: dict[str, object], given: list[World]) -> list[list[dict[str, Any]]]:
    """What Kafka Streams gives for each world: key, value, at."""
    asked = [[vars(record) for record in world] for world in given]
    answer: list[list[dict[str, Any]]] = jvm.ask({"case": case, "parameters": parameters, "worlds": asked}, 120)
    return answer


def ours(
    app: StreamsApp, start: Callable[..., TestDriver], given: list[World], epochs: int = EPOCHS
) -> list[dict[str, Any]]:
    """What our program gives for all worlds: rows of its topic `out`. An epoch takes some records of each."""
    driver = start(app, partitions=WORLDS)
    some = len(given[0]) // epochs
    rows: list[dict[str, Any]] = []
    for first in range(0, len(given[0]), some):
        for records in given:
            for record in records[first : first + some]:
                row = None if record.value is None else {"k": record.key, "v": record.value, "at": record.at}
                driver.pipe(record.topic, [row], key=record.key, at=record.at, step=False)
        driver.step()
        rows += [deleted(row["key"]) if row.keys() == {"key"} else row for row in driver.output("out")]
    return rows


def deleted(key: bytes) -> dict[str, Any]:
    """A row of which there is nothing but the key: an aggregate's, or the text of a table's."""
    if key.startswith(b"{"):
        row: dict[str, Any] = json.loads(key)
        return row
    return dict.fromkeys(("k", "g"), key.decode())


def numbers(chosen: random.Random, world: int) -> str:
    return str(chosen.randrange(100))


def sometimes(value: Value) -> Value:
    """One in five deletes its key."""
    return lambda chosen, world: None if chosen.random() < 0.2 else value(chosen, world)


def grouped(chosen: random.Random, world: int) -> str:
    """A number with a group, of which each world has others."""
    return f"w{world}-{chosen.choice('abc')}:{chosen.randrange(100)}"


SCHEMA = "k STRING, v STRING, at TIMESTAMP"


def stream_of(app: StreamsApp, topic: str) -> Any:
    return app.stream(topic, schema=SCHEMA, key="k", event_time="at", timestamp_format="timestamp_millis")


def table_of(app: StreamsApp, topic: str) -> Any:
    return app.table(topic, schema=SCHEMA, key="k", timestamp_format="timestamp_millis")


def last_of_each(rows: list[tuple[str, str | None]]) -> dict[str, str]:
    """A table, of its changes."""
    return {key: value for key, value in dict(rows).items() if value is not None}


def in_the_end(wanted: list[dict[str, Any]]) -> dict[str, str]:
    return last_of_each([(record["key"], record["value"]) for record in wanted])


def sides(row: dict[str, Any]) -> str | None:
    """What is joined, as Kafka Streams' program writes it; None for a deletion."""
    if "l" not in row and "r" not in row:
        return None
    return f"{row.get('l')}|{row.get('r')}".replace("None", "null")


def millis(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize("emit", ["update", "close"])
@pytest.mark.parametrize("advance", [*long(10_000), 5_000])
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


@pytest.mark.parametrize("itself", [False, True], ids=["others", "itself"])
@pytest.mark.parametrize("how", [*long("inner", "left"), "outer"])
def test_joins_of_streams(kafka_streams: Jvm, kohort_test_driver: Any, how: Any, itself: bool) -> None:
    """None of the records is late: time is how far the first stream is in Kafka Streams, and here how far both are.

    Each record of a stream that is joined with itself has a match: itself. In Kafka Streams one that is out of order is
    given without any, too, before it is its own other side.
    """
    topics = ["left"] if itself else ["left", "right"]
    given = worlds(1, topics, numbers, 4_000)
    parameters = {"how": how, "before": 2_000, "after": 1_000, "grace": 10_000, "itself": itself}
    # Rows without a match come when time has passed them: those of the end, when something comes long after.
    end = max(record.at for world in given for record in world) + 1_000_000
    for number, world in enumerate(given):
        key = keys_of(number, 4)[3]
        world += [Record(topic, key, "0", end + at) for at in (0, 20_000) for topic in topics]
    wanted = [record for world in witnessed(kafka_streams, "stream_join", parameters, given) for record in world]
    if itself:
        alone = [record for record in wanted if "null" in record["value"]]
        assert bool(alone) == (how != "inner")
        wanted = [record for record in wanted if record not in alone]
    app = StreamsApp("joined")
    source = stream_of(app, "left")
    left = source.select("k", "v AS l", "at")
    right = (source if itself else stream_of(app, "right")).select("k", "v AS r", "at AS other")
    joined = left.join_stream(right, on="k", before="2 seconds", after="1 second", grace="10 seconds", how=how)
    joined.to("out")
    found = [
        (row["k"], f"{row.get('l')}|{row.get('r')}".replace("None", "null"))
        for row in ours(app, kohort_test_driver, given)
    ]
    assert sorted(found) == sorted((record["key"], record["value"]) for record in wanted)


@pytest.mark.long
def test_late_records_of_joined_streams(kafka_streams: Jvm, kohort_test_driver: Any) -> None:
    """A pair is given here until time has passed either record by its reach and the grace. Kafka Streams gives it for
    as long as it has the other record, which goes by its store's retention, in segments. Until then both are the same.

    In every second epoch all records are of one time, of both streams: so far have both come, and so far has the first.
    Those of the next epoch are older, by different times.
    """
    before, after, grace, some = 2_000, 1_000, 3_000, 8
    chosen = random.Random(11)
    given: list[World] = []
    passed_by: dict[str, int] = {}
    come: dict[str, int] = {}
    for number in range(WORLDS):
        *keys, pacing = keys_of(number, 4)
        now, world = START, []
        for step in range(10):
            now += chosen.choice([700, 2_500, 4_000])
            world += [Record(topic, pacing, "pace", now) for topic in ("left", "right")] * (some // 2)
            for place in range(some):
                topic = chosen.choice(["left", "right"])
                behind = chosen.randrange(9_000)
                value = f"{number}-{step}-{place}"
                world.append(Record(topic, chosen.choice(keys), value, now - behind))
                passed_by[value] = now - behind + (after if topic == "left" else before) + grace
                come[value] = now
        given.append(world)
    parameters = {"how": "inner", "before": before, "after": after, "grace": grace, "itself": False}
    wanted = [record for world in witnessed(kafka_streams, "stream_join", parameters, given) for record in world]
    app = StreamsApp("late")
    left = stream_of(app, "left").select("k", "v AS l", "at")
    right = stream_of(app, "right").select("k", "v AS r", "at AS other")
    left.join_stream(right, on="k", before=f"{before} ms", after=f"{after} ms", grace=f"{grace} ms").to("out")
    found = [sides(row) for row in ours(app, kohort_test_driver, given, epochs=20) if row["l"] != "pace"]
    theirs = [record["value"] for record in wanted if not record["value"].startswith("pace")]
    on_time = [
        pair
        for pair, (one, other) in ((pair, pair.split("|")) for pair in theirs)
        if max(come[one], come[other]) <= min(passed_by[one], passed_by[other])
    ]
    assert sorted(found, key=str) == sorted(on_time)
    assert len(found) > 50 and len(theirs) > len(on_time)


@pytest.mark.parametrize("emit", ["update", *long("close")])
def test_sessions(kafka_streams: Jvm, kohort_test_driver: Any, emit: Any) -> None:
    """When a session is just over, to the millisecond, a row still comes into it here: none does at these times."""
    given = worlds(4, ["stream"], numbers, 8_000)
    parameters = {"gap": 1_983, "grace": 3_011, "emit": emit}
    wanted = [record for world in witnessed(kafka_streams, "sessions", parameters, given) for record in world]
    app = StreamsApp("sessions")
    rows = stream_of(app, "stream").with_columns(v=F.col("v").cast("long"))
    by = rows.group_by("k", session("at", "1983 ms", grace="3011 ms", retention="3011 ms", end="ended"))
    by.aggregate("sums", emit=emit, n=count(), total=sum_("v")).to("out")
    results: list[tuple[str, str | None]] = []
    for row in ours(app, kohort_test_driver, given):
        ended = f"/{millis(row['ended'])} {row['n']},{row['total']}" if "n" in row else None
        results.append((f"{row['k']}@{millis(row['window'])}", ended))
    found = [f"{key}{value}" for key, value in last_of_each(results).items()]
    assert sorted(found) == sorted(f"{key} {value}" for key, value in in_the_end(wanted).items())
    if emit == "close":
        assert len(results) == len(wanted)


def test_aggregates_of_tables(kafka_streams: Jvm, kohort_test_driver: Any) -> None:
    """Groups without rows are deleted here; in Kafka Streams they are what the subtractor makes of them."""
    given = worlds(5, ["table"], sometimes(grouped), 1)
    wanted = [record for world in witnessed(kafka_streams, "table_aggregate", {}, given) for record in world]
    app = StreamsApp("subtracted")
    rows = table_of(app, "table").select("k", "split(v, ':')[0] AS g", "CAST(split(v, ':')[1] AS BIGINT) AS n")
    rows.group_by("g").aggregate("sums", rows=count(), total=sum_("n")).to("out")
    found = [
        (row["g"], f"{row['rows']},{row['total']}" if "rows" in row else None)
        for row in ours(app, kohort_test_driver, given)
    ]
    assert last_of_each(found) == {key: value for key, value in in_the_end(wanted).items() if value != "0,0"}


@pytest.mark.parametrize("how", [*long("inner", "left"), "outer"])
def test_joins_of_tables(kafka_streams: Jvm, kohort_test_driver: Any, how: Any) -> None:
    given = worlds(6, ["left", "right"], sometimes(numbers), 1)
    wanted = [record for world in witnessed(kafka_streams, "table_join", {"how": how}, given) for record in world]
    app = StreamsApp("tables")
    left, right = table_of(app, "left").select("k", "v AS l"), table_of(app, "right").select("k", "v AS r")
    left.join(right, how=how).to("out")
    found = [(row["k"], sides(row)) for row in ours(app, kohort_test_driver, given)]
    assert last_of_each(found) == in_the_end(wanted)


@pytest.mark.long
@pytest.mark.parametrize("how", ["inner", "left"])
def test_joins_by_a_foreign_key(kafka_streams: Jvm, kohort_test_driver: Any, how: Any) -> None:
    given = worlds(7, ["left", "right"], sometimes(grouped), 1)
    for number, world in enumerate(given):  # the right side's keys are the left one's groups
        for place, record in enumerate(world):
            if record.topic == "right":
                world[place] = replace(record, key=f"w{number}-{'abc'[place % 3]}")
    wanted = [record for world in witnessed(kafka_streams, "foreign_key_join", {"how": how}, given) for record in world]
    app = StreamsApp("references")
    left = table_of(app, "left").select("k", "split(v, ':')[0] AS g", "v AS l")
    left.join(table_of(app, "right").select("k AS g", "v AS r"), on={"g": "g"}, how=how).to("out")
    found = [(row["k"], sides(row)) for row in ours(app, kohort_test_driver, given)]
    assert last_of_each(found) == in_the_end(wanted)


@pytest.mark.long
@pytest.mark.parametrize("how", ["inner", "left"])
def test_joins_of_a_stream_with_a_table_that_is_made_of_another(
    kafka_streams: Jvm, kohort_test_driver: Any, how: Any
) -> None:
    """Each epoch has records of one topic, so that what is joined doesn't depend on which is read first."""
    given = worlds(8, ["left", "right"], sometimes(lambda chosen, _: f"{chosen.choice('xy')}{chosen.randrange(9)}"), 1)
    some = len(given[0]) // EPOCHS
    for world in given:
        for place, record in enumerate(world):
            topic = ("right", "left")[place // some % 2]
            value = record.value or ("none" if topic == "left" else None)
            world[place] = replace(record, topic=topic, value=value)
    wanted = [
        record for world in witnessed(kafka_streams, "stream_table_join", {"how": how}, given) for record in world
    ]
    app = StreamsApp("filtered")
    table = table_of(app, "right").where("v NOT LIKE 'x%'").select("k", "v AS r")
    stream_of(app, "left").select("k", "v AS l").join(table, how=how).to("out")
    found = [(row["k"], sides(row)) for row in ours(app, kohort_test_driver, given)]
    assert sorted(found, key=str) == sorted(((record["key"], record["value"]) for record in wanted), key=str)


@pytest.mark.long
@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("grace", [0, 4_000])
def test_joins_as_of_the_time_of_rows(kafka_streams: Jvm, kohort_test_driver: Any, how: Any, grace: int) -> None:
    """Each epoch has records of one topic, as above. Some of both are late, and none is older than the history.

    The history goes by both sides' times here, and there not by the lesser of them.
    """
    given = worlds(9 + grace, ["left", "right"], sometimes(numbers), 12_000)
    some = len(given[0]) // EPOCHS
    for world in given:
        for place, record in enumerate(world):
            topic = ("right", "left")[place // some % 2]
            world[place] = replace(record, topic=topic, value=record.value or ("none" if topic == "left" else None))
    parameters = {"how": how, "history": 3_600_000, "grace": grace}
    wanted = [record for world in witnessed(kafka_streams, "as_of_join", parameters, given) for record in world]
    app = StreamsApp("versions")
    table = table_of(app, "right").select("k", "v AS r")
    stream = stream_of(app, "left").select("k", "v AS l", "at")
    stream.join_as_of(table, how=how, history="1 hour", grace=f"{grace} ms").to("out")
    found = [(row["k"], sides(row), millis(row["at"])) for row in ours(app, kohort_test_driver, given)]
    expected = [(record["key"], record["value"], record["at"]) for record in wanted]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert len({each for _, each, _ in found}) > 20
