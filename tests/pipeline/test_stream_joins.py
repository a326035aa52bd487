"""Joins of streams, in a running application."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kohort.spark import ProgramError, StreamsApp
from kohort.spark.testing import TestDriver
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


Trade = tuple[str | None, int, int]
"""Its id, its number, and its time in seconds."""


def trades(seed: int) -> list[Trade]:
    """Trades whose time mostly goes on, and goes back by less than the grace."""
    chosen = random.Random(seed)
    now, made = 0, []
    for number in range(36):
        now += chosen.randrange(5)
        made.append((chosen.choice(["a", "b", "b", None]), number, max(now - chosen.randrange(5), 0)))
    return made


def expected(given: list[Trade], how: str) -> list[tuple[str | None, int | None, int | None]]:
    """All pairs there are of two parts of the trades, which have some in common, and what has no match."""
    left, right = ([each for each in given if each[1] % 3 != out] for out in (1, 0))
    pairs = [(a, b) for a in left for b in right if a[0] is not None and a[0] == b[0] and -10 <= b[2] - a[2] <= 5]
    found: list[tuple[str | None, int | None, int | None]] = [(a[0], a[1], b[1]) for a, b in pairs]
    if how != "inner":
        found += [(a[0], a[1], None) for a in left if all(a is not one for one, _ in pairs)]
    if how == "outer":
        found += [(b[0], None, b[1]) for b in right if all(b is not one for _, one in pairs)]
    return found


@pytest.mark.parametrize("how", ["inner", "left", "outer"])
def test_a_stream_is_joined_with_itself(spark: SparkSession, tmp_path: Path, how: Any) -> None:
    """A row is one of both sides, and its own match; what is late is late on each of them."""
    app = StreamsApp("itself", state_dir=tmp_path)
    both = app.stream("trades", schema="id STRING, n INT, at TIMESTAMP", event_time="at")
    others = both.where("n % 3 <> 0").select("id", "n AS m", "at AS then")
    mine = both.where("n % 3 <> 1")
    mine.join_stream(others, on="id", before="10 seconds", after="5 seconds", grace="5 seconds", how=how).to("out")

    def pipe(*given: Trade) -> None:
        start = datetime(2013, 1, 1, tzinfo=UTC)
        driver.pipe("trades", [{"id": name, "n": n, "at": start + timedelta(seconds=at)} for name, n, at in given])

    given, end = trades(7), ("end", 101, 1_000)
    with TestDriver(app, spark) as driver:
        for first in range(0, len(given), 12):
            pipe(*given[first : first + 12])
        assert driver.late == 0
        pipe(end)  # those without a match come when time has passed them
        pipe(("a", 201, 10), ("a", 202, 10), ("a", 203, 10))  # a left one, a right one, and one that is both
        assert driver.late == 4
        found = [(row.get("id"), row.get("n"), row.get("m")) for row in driver.output("out")]
    assert sorted(found, key=str) == sorted(expected([*given, end], how), key=str)
    assert (0 < sum(n == m for _, n, m in found) < len(found)) and ("end", 101, 101) in found
