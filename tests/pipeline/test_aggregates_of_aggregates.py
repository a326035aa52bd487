"""Aggregates as streams: what is aggregated, or written, further on."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark import StreamsApp, count, max_, window
from kohort.testing.broker import Broker

from .applications import create_topics, producer, read, run_in_steps

BID = "auction INT, price DOUBLE, at TIMESTAMP"


def hottest(servers: str, state: Path) -> StreamsApp:
    """The largest number of bids for an auction in each minute."""
    app = StreamsApp("hottest", bootstrap_servers=servers, state_dir=state)
    bids = app.stream("bids", schema=BID, event_time="at")
    by_auction = bids.group_by("auction", window("at", "1 minute", grace="10 seconds"))
    counts = by_auction.aggregate("counts", emit="close", n=count(), most=max_("price"))
    stream = counts.as_stream()
    stream.transform(lambda df: df.where(F.col("n") > 1)).to("several", key="auction")
    stream.group_by("window").aggregate("largest", n=max_("n"), auctions=count()).to("largest")
    return app


def send(servers: str, bids: list[tuple[int, float, str]]) -> int:
    sending = producer(servers)
    for auction, price, at in bids:
        sending.produce("bids", json.dumps({"auction": auction, "price": price, "at": f"2013-01-01T00:{at}Z"}))
    sending.flush()
    return len(bids)


def test_aggregates_are_aggregated_and_written_further_on(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "bids", "several", "largest", partitions=1)
    found: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def look() -> None:
        several, largest = (
            [json.loads(each.value() or b"") for each in read(servers, topic)] for topic in ("several", "largest")
        )
        found.append(({row["auction"]: row for row in several}, {row["window"][14:19]: row for row in largest}))

    steps = [
        partial(send, servers, [(1, 5.0, "00:01"), (2, 1.0, "00:02"), (1, 7.5, "00:59"), (3, 2.0, "01:30")]),
        partial(send, servers, [(3, 4.0, "02:30")]),
    ]
    run_in_steps(hottest(servers, tmp_path), spark, steps, look, moved=True)
    first, second = found
    assert first == (
        {1: {"window": "2013-01-01T00:00:00.000Z", "auction": 1, "n": 2, "most": 7.5}},
        {"00:00": {"window": "2013-01-01T00:00:00.000Z", "n": 2, "auctions": 2}},
    )
    assert second[0] == first[0]
    assert second[1] == first[1] | {"01:00": {"window": "2013-01-01T00:01:00.000Z", "n": 1, "auctions": 1}}


def test_a_stream_of_groups_stands_in_the_description(spark: SparkSession, tmp_path: Path) -> None:
    described = hottest("localhost:9092", tmp_path).describe(spark)
    assert "topic: hottest-counts-stream-repartition" in described
    assert "topics: [hottest-counts-stream-repartition]" in described
