"""What a running application writes: groups in other formats, topics that a column names, headers and tombstones."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from kohort.spark import (
    ApplicationError,
    DeadLetter,
    Drop,
    Fail,
    StreamsApp,
    count,
    count_distinct,
    count_if,
    sum_,
    window,
)
from kohort.spark.formats import decoder
from kohort.spark.program.error_policies import ErrorPolicy
from kohort.testing.broker import Broker

from .applications import create_topics, producer, read, run_in_steps

BID = "auction BIGINT, bidder STRING, price BIGINT, topic STRING, at TIMESTAMP"
AUCTION = "id BIGINT, seller STRING, price BIGINT"


def bid(number: int) -> dict[str, Any]:
    return {
        "auction": number % 3, "bidder": f"b{number % 4}", "price": number * 10,
        "topic": ["cheap", "dear"][number >= 6], "at": f"2026-01-01T00:{number * 5:02d}:00Z",
    }  # fmt: skip


BIDS = [bid(number) for number in range(12)]


def send(servers: str, topic: str, key: str, records: list[dict[str, Any]]) -> int:
    writer = producer(servers)
    for record in records:
        writer.produce(topic, key=str(record[key]), value=json.dumps(record), headers=[("trace", str(record[key]))])
    writer.flush()
    return len(records)


def test_what_a_program_writes(spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "bids", "auctions", "by-auction", "cheap", "dear", "sold", "dead")
    send(servers, "auctions", "id", [{"id": 0, "seller": "s", "price": 5}, {"id": 1, "seller": "t", "price": 50}])
    app = StreamsApp("auctions-app", bootstrap_servers=servers, state_dir=tmp_path)
    bids = app.stream(
        "bids", schema=BID, key="auction", event_time="at", headers=True, on_error=DeadLetter("dead")
    ).select("auction AS item", "bidder", "price", "topic", "at", "_headers")
    bids.to(column="topic", key="item", headers="_headers")
    bids.with_columns(topic="'nowhere'").where("price = 110").to(column="topic", key="bidder", headers="_headers")
    auctions = app.table("auctions", schema=AUCTION, key="id")
    sold = bids.join(auctions, on={"item": "id"}, prefix="auction_")
    sold.select("item", "auction_seller", "auction_price").to("sold", key="item", tombstone="auction_price > 10")
    by_auction = bids.group_by("item", window("at", "1 hour", grace="1 minute", end="until"))
    by_auction.aggregate(
        "counts", n=count(), dear=count_if("price >= 60"), cheap=sum_("price", where="price < 60"),
        bidders=count_distinct("bidder"),
    ).to("by-auction", format="avro", key=("item", "until"))  # fmt: skip
    heard = run_in_steps(app, spark, [lambda: send(servers, "bids", "auction", BIDS)])

    for topic in ("cheap", "dear"):
        found = [(each.key(), json.loads(each.value()), each.headers()) for each in read(servers, topic)]
        wanted = [each for each in BIDS if each["topic"] == topic]
        assert sorted(value["price"] for _, value, _ in found) == [each["price"] for each in wanted]
        for key, value, headers in found:
            assert set(value) == {"item", "bidder", "price", "at"}
            assert key == str(value["item"]).encode()
            assert headers == [("trace", key)]
    (dead,) = read(servers, "dead")
    assert (dead.key(), json.loads(dead.value())["price"]) == (b"b3", 110)
    reason = ("__streams.errors.message", b"there is no topic 'nowhere', which its column names")
    assert dead.headers() == [("trace", b"2"), reason]
    assert sum(done.reasons.get("no topic", 0) for done in heard.epochs) == 1
    assert {each.key(): each.value() for each in read(servers, "sold")} == {
        b"0": b'{"item":0,"auction_seller":"s","auction_price":5}',
        b"1": None,
    }
    times = [StructField(name, TimestampType()) for name in ("window", "until")]
    names = ("n", "dear", "cheap", "bidders")
    schema = StructType([*times, *(StructField(name, LongType()) for name in ("item", *names))])
    last = {each.key(): each.value() for each in read(servers, "by-auction")}
    rows = decoder("avro", schema).decode(pa.array(list(last.values()), pa.binary())).columns.to_pylist()
    assert [json.loads(key) for key in sorted(last)] == [
        {"item": item, "until": "2026-01-01T01:00:00.000000Z"} for item in range(3)
    ]
    hour = {"window": datetime(2026, 1, 1, tzinfo=UTC), "until": datetime(2026, 1, 1, 1, tzinfo=UTC)}
    assert sorted(rows, key=lambda row: row["item"]) == [
        {**hour, "item": item, "n": 4, "dear": 2, "cheap": cheap, "bidders": 4}
        for item, cheap in enumerate((30, 50, 70))
    ]


@pytest.mark.long
@pytest.mark.parametrize("policy", [Fail(), Drop()])
def test_rows_to_a_topic_that_isnt_there_go_by_the_streams_policy(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path, policy: ErrorPolicy
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "bids", "cheap")
    app = StreamsApp("named", bootstrap_servers=servers, state_dir=tmp_path)
    app.stream("bids", schema=BID, on_error=policy).to(column="topic", key="auction")

    def run() -> Any:
        return run_in_steps(app, spark, [lambda: send(servers, "bids", "auction", BIDS)])

    if isinstance(policy, Fail):
        with pytest.raises(ApplicationError, match="there is no topic 'dear', which its column names"):
            run()
        assert read(servers, "cheap") == []
    else:
        heard = run()
        assert sum(done.reasons.get("no topic", 0) for done in heard.epochs) == 6
        assert len(read(servers, "cheap")) == 6
