"""Aggregates as streams: what is aggregated, or written, further on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark import StreamsApp, count, max_, window
from kohort.spark.testing import TestDriver

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


def test_aggregates_are_aggregated_and_written_further_on(spark: SparkSession, tmp_path: Path) -> None:
    """With a broker: test_test_driver_as_application."""

    def bid(auction: int, price: float, at: str) -> dict[str, Any]:
        return {"auction": auction, "price": price, "at": f"2013-01-01T00:{at}Z"}

    with TestDriver(hottest("localhost:9092", tmp_path), spark) as driver:
        driver.pipe("bids", [bid(1, 5.0, "00:01"), bid(2, 1.0, "00:02"), bid(1, 7.5, "00:59"), bid(3, 2.0, "01:30")])
        assert driver.output("several") == [{"window": "2013-01-01T00:00:00.000Z", "auction": 1, "n": 2, "most": 7.5}]
        first = {"window": "2013-01-01T00:00:00.000Z", "n": 2, "auctions": 2}
        assert driver.output("largest") == [first]
        driver.pipe("bids", [bid(3, 4.0, "02:30")])
        assert driver.output("several") == []
        assert driver.output("largest") == [{"window": "2013-01-01T00:01:00.000Z", "n": 1, "auctions": 1}]


def test_a_stream_of_groups_stands_in_the_description(spark: SparkSession, tmp_path: Path) -> None:
    described = hottest("localhost:9092", tmp_path).describe(spark)
    assert "topic: hottest-counts-stream-repartition" in described
    assert "topics: [hottest-counts-stream-repartition]" in described
