"""Joins of streams, in a running application."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark import ProgramError, StreamsApp
from kohort.testing.broker import Broker

from .applications import create_topics, producer, read, run_in_steps

ORDER = "id STRING, item STRING, at TIMESTAMP"
PAYMENT = "order STRING, paid DOUBLE, `when` TIMESTAMP"


def send(servers: str, rows: list[tuple[str, dict[str, Any], str]]) -> int:
    sending = producer(servers)
    for topic, row, at in rows:
        row |= {"at" if topic == "orders" else "when": f"2013-01-01T{at}:00Z"}
        sending.produce(topic, json.dumps(row), partition=0)
    sending.flush()
    return len(rows)


def order(name: str, item: str, at: str) -> tuple[str, dict[str, Any], str]:
    return "orders", {"id": name, "item": item}, at


def payment(name: str, paid: float, at: str) -> tuple[str, dict[str, Any], str]:
    return "payments", {"order": name, "paid": paid}, at


def joined_app(servers: str, state: Path, how: Literal["inner", "left", "outer"]) -> StreamsApp:
    app = StreamsApp("joining", bootstrap_servers=servers, state_dir=state)
    orders = app.stream("orders", schema=ORDER, event_time="at")
    payments = app.stream("payments", schema=PAYMENT, event_time="when")
    joined = orders.join_stream(payments, on={"id": "order"}, within="1 hour", grace="30 minutes", how=how)
    joined.transform(lambda df: df.withColumn("hour", F.hour("at"))).to("paid", key="id")
    return app


def test_rows_of_two_topics_are_joined_once_over_a_restart(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "orders", "payments", "paid", partitions=1)
    steps = [
        partial(send, servers, [order("a", "tea", "01:00"), payment("a", 1.0, "01:30"), order("b", "milk", "01:10")]),
        partial(send, servers, [payment("b", 2.0, "00:20"), payment("a", 3.0, "02:01"), order("c", "jam", "01:20")]),
        partial(send, servers, [order("d", "egg", "05:00"), payment("e", 4.0, "05:00")]),
        partial(send, servers, [order("c", "late", "01:20")]),
    ]
    found: list[list[tuple[Any, ...]]] = []

    def look() -> None:
        rows = [json.loads(each.value() or b"") for each in read(servers, "paid")]
        before = sum(map(len, found))
        some = [(row["id"], row["item"], row["paid"], row["hour"]) for row in rows[before:]]
        found.append(sorted(some, key=str))

    late = 0
    for number, some in enumerate([steps[:2], steps[2:]]):
        heard = run_in_steps(
            joined_app(servers, tmp_path / str(number), "outer"), spark, some, look, moved=True, sources=("0", "1")
        )
        late += heard.total("late")
    assert found == [
        [("a", "tea", 1.0, 1)],
        [("b", "milk", 2.0, 1)],
        [("a", None, 3.0, None), ("c", "jam", None, 1)],
        [],
    ]
    assert late == 1


def test_both_sides_stand_in_the_description(spark: SparkSession) -> None:
    described = joined_app("localhost:9092", Path("unused"), "left").describe(spark)
    assert "KSTREAM-JOIN" in described
    stores = "[orders-payments-clock, orders-payments-left, orders-payments-right, orders-payments-unmatched]"
    assert f"stores: {stores}" in described
    assert described.count("topic: joining-orders-payments-repartition") == 2


def test_what_cannot_be_joined_is_refused(spark: SparkSession) -> None:
    app = StreamsApp("refused")
    orders = app.stream("orders", schema=ORDER, event_time="at")
    others = app.stream("others", schema="id INT, item STRING")
    with pytest.raises(ProgramError, match="all rows would have to be kept for ever"):
        orders.join_stream(others, on="id", grace="1 hour")
    orders.join_stream(others, on="id", within="1 hour", grace="1 hour").to("out")
    with pytest.raises(ProgramError, match="'id' is STRING, and 'id' of the other stream INT: cast one of them"):
        app.compile(spark)
    app = StreamsApp("refused")
    orders = app.stream("orders", schema=ORDER, event_time="at")
    orders.join_stream(orders, on="id", within="1 hour", grace="1 hour").to("out")
    with pytest.raises(ProgramError, match="both streams have the column 'item': rename it"):
        app.compile(spark)
