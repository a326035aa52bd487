"""What came first and last among rows of the same time: by offset, however epochs are cut."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.protocol.records.partitioner import partition_of
from kohort.spark import StreamsApp, collect, first, last
from kohort.testing.broker import Broker

from .applications import Heard, create_topics, producer, read, run_until

RECORDS = 400
KEYS = [f"key-{number}" for number in range(6)]
LIMIT = 4
TOPICS = {"by-key": "k", "by-group": "g", "again": "k", "by-number": "k"}


class Sent(NamedTuple):
    """A record, in the order of (time, offset, value)."""

    second: int
    offset: int
    value: str
    key: str
    group: str
    number: int


def test_ties_go_by_offset_however_epochs_are_cut(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "in", *TOPICS)
    sent = produced(servers)
    app = StreamsApp("ties", bootstrap_servers=servers, state_dir=tmp_path, max_epoch_records=60)
    stream = app.stream(
        "in", schema="k STRING, g STRING, v STRING, n INT, at TIMESTAMP", key="k", event_time="at"
    ).transform(lambda df: df.select("k", "g", "n", F.upper("v").alias("v"), "at"))
    ends: dict[str, Any] = {
        "first": first("v"), "last": last("v"), "head": collect("v", LIMIT), "tail": collect("v", LIMIT, keep="last"),
    }  # fmt: skip
    stream.group_by("k").aggregate("in-place", **ends).to("by-key")
    stream.group_by("g").aggregate("moved", **ends).to("by-group")
    stream.repartition("k").group_by("k").aggregate("again", **ends).to("again")
    by = {"first": first("v", by="n"), "last": last("v", by="n")}
    by |= {"head": collect("v", LIMIT, by="n"), "tail": collect("v", LIMIT, by="n", keep="last")}
    stream.group_by("k").aggregate("numbered", **by).to("by-number")

    expected = {
        "by-key": folded([(each.key, each[:3], each.value) for each in sent]),
        "by-group": folded([(each.group, each[:3], each.value) for each in sent]),
        "again": folded([(each.key, each[:3], each.value) for each in sent]),
        "by-number": folded([(each.key, (each.number, *each[1:3]), each.value) for each in sent]),
    }
    heard = Heard()
    run_until(app, spark, heard, lambda: {topic: latest(servers, topic) for topic in TOPICS} == expected)
    assert not heard.failures
    assert {topic: latest(servers, topic) for topic in TOPICS} == expected
    assert sum(each.subtopology == "0" for each in heard.epochs) >= RECORDS // 60


@pytest.mark.parametrize("latest_counts", [True, False])
def test_rows_whose_offset_is_lost_go_by_value(spark: SparkSession, latest_counts: bool) -> None:
    app = StreamsApp("lost")
    stream = app.stream("in", schema="k STRING, v STRING, at TIMESTAMP", key="k", event_time="at")
    stream.group_by("k").aggregate("x", v=last("v") if latest_counts else first("v"))
    (spec,) = app.compile(spark).subtopologies[0].aggregates
    rows = spark.range(4).selectExpr(
        "'a' as k", "cast((id * 3) % 4 as string) as v", "timestamp_seconds(0) as at", "cast(null as bigint) as _offset"
    )
    (found,) = rows.groupBy("k").agg(*spec.partial_columns()).select(*spec.finish_columns()).collect()
    assert found.v == ("3" if latest_counts else "0")


def produced(servers: str) -> list[Sent]:
    """Many records of few times, with values that don't rise with offsets."""
    chance = random.Random(11)
    sending = producer(servers)
    offsets: dict[int, int] = defaultdict(int)
    sent = []
    for number in range(RECORDS):
        key, second = chance.choice(KEYS), chance.randrange(3)
        partition = partition_of(key.encode(), 2)
        each = Sent(second, offsets[partition], f"V{chance.randrange(10_000):04}", key, f"g{number % 3}", second % 2)
        offsets[partition] += 1
        sent.append(each)
        value = {"k": key, "g": each.group, "v": each.value.lower(), "n": each.number,
                 "at": f"2013-01-01T05:00:0{second}Z"}  # fmt: skip
        sending.produce("in", json.dumps(value).encode(), key.encode())
    sending.flush()
    return sent


def folded(rows: list[tuple[str, tuple[Any, ...], str]]) -> dict[str, dict[str, Any]]:
    """The results of rows of (group, what they are ordered by, value)."""
    groups = defaultdict(list)
    for group, order, value in rows:
        groups[group].append((order, value))
    found = {}
    for group, several in groups.items():
        values = [value for _, value in sorted(several)]
        found[group] = {"first": values[0], "last": values[-1], "head": values[:LIMIT], "tail": values[-LIMIT:]}
    return found


def latest(servers: str, topic: str) -> dict[str, dict[str, Any]]:
    rows = [json.loads(message.value()) for message in read(servers, topic)]
    group = TOPICS[topic]
    return {row[group]: {name: value for name, value in row.items() if name != group} for row in rows}
