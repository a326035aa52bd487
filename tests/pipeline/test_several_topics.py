"""Streams that read several topics, or those that a pattern matches."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark import ProgramError, StreamsApp, count, list_state, max_, sliding, value_state, window
from kohort.spark.program.source_topics import matched_topics, with_topics
from kohort.spark.runtime import topic_watch
from kohort.spark.testing import TestDriver
from kohort.testing.broker import Broker

from .applications import Heard, create_topics, producer, read, run_until

ORDER = "id BIGINT, customer STRING, at TIMESTAMP"


def order(number: int, customer: str, minute: int = 0) -> dict[str, Any]:
    return {"id": number, "customer": customer, "at": f"2013-01-01T00:{minute:02}:00Z"}


def test_rows_say_which_topic_they_are_from(spark: SparkSession) -> None:
    app = StreamsApp("shops")
    orders = app.stream(["eu", "us"], schema=ORDER, topics=True)
    orders.select("id", "_topic AS shop").to("all")
    with TestDriver(app, spark, partitions={"eu": 1, "us": 3}) as driver:
        driver.pipe("eu", [order(1, "ann"), order(2, "bob")])
        for partition in range(3):
            driver.pipe("us", [order(10 + partition, "cid")], partition=partition, step=False)
        driver.step()
        assert sorted((row["id"], row["shop"]) for row in driver.output("all")) == [
            (1, "eu"), (2, "eu"), (10, "us"), (11, "us"), (12, "us"),
        ]  # fmt: skip


def test_groups_are_counted_over_all_topics_where_they_lie(spark: SparkSession) -> None:
    app = StreamsApp("shops")
    orders = app.stream(["eu", "us"], schema=ORDER, key="customer", event_time="at")
    by_hour = orders.group_by("customer", window("at", "10 minutes", grace="1 minute"))
    by_hour.aggregate("counts", n=count(), last=max_("id")).to("counts")
    with TestDriver(app, spark, partitions={"eu": 2, "us": 2}) as driver:
        driver.pipe("eu", [order(1, "ann"), order(2, "bob")], step=False)
        driver.pipe("us", [order(3, "ann", 9), order(4, "cid", 1)])
        driver.pipe("us", [order(5, "ann", 30)])
        driver.pipe("eu", [order(6, "ann", 1)])  # ten minutes after its window was closed by the other topic
        assert driver.late == 1
        rows = {(row["customer"], row["window"][14:16]): (row["n"], row["last"]) for row in driver.output("counts")}
        assert rows == {("ann", "00"): (2, 3), ("bob", "00"): (1, 2), ("cid", "00"): (1, 4), ("ann", "30"): (1, 5)}


def test_topics_of_a_pattern_are_read(spark: SparkSession) -> None:
    app = StreamsApp("shops")
    orders = app.stream(pattern="orders-.*", schema=ORDER, topics=True)
    orders.group_by("_topic").aggregate("counts", n=count()).to("counts", key="_topic")
    with TestDriver(app, spark, partitions={"orders-eu": 1, "orders-us": 2}) as driver:
        driver.pipe("orders-eu", [order(1, "ann")], step=False)
        driver.pipe("orders-us", [order(2, "ann"), order(3, "bob")])
        assert {row["_topic"]: row["n"] for row in driver.output("counts")} == {"orders-eu": 1, "orders-us": 2}


def test_the_topology_has_all_topics_or_the_pattern(spark: SparkSession) -> None:
    app = StreamsApp("shops")
    app.stream(["b", "a"], schema=ORDER, key="customer").group_by("customer").aggregate("n", n=count())
    program = app.compile(spark)
    told = program.topology.subtopologies["0"]
    assert (told.source_topics, told.copartition_groups) == (("a", "b"), (("a", "b"),))
    assert "topics: [b, a]" in app.describe(spark)

    app = StreamsApp("shops")
    app.stream(pattern="o.*", schema=ORDER).group_by("customer").aggregate("n", n=count())
    program = app.compile(spark)
    told = program.topology.subtopologies["0"]
    assert (told.source_topics, told.source_patterns, told.copartition_groups) == ((), ("o.*",), ())
    assert "topics: o.*)" in app.describe(spark)
    found = with_topics(program, matched_topics(program, ["oa", "ob", "x", "__consumer_offsets"]))
    assert found.subtopologies[0].input_topics == ("oa", "ob")
    assert found.fingerprint == program.fingerprint and found.topology == program.topology
    with pytest.raises(ProgramError, match=r"stream 'o\.\*': no topic matches this pattern. Create one"):
        with_topics(program, matched_topics(program, ["x"]))


@pytest.mark.parametrize("orders", [{"topic": ["eu", "us"]}, {"pattern": "eu|us"}, {"topic": "eu"}], ids=str)
def test_what_is_kept_by_offsets_is_kept_behind_one_topic(spark: SparkSession, orders: dict[str, Any]) -> None:
    """Rows of two topics may have the same offset, and so the same place in a list."""
    app = StreamsApp("shops")
    stream = app.stream(**orders, schema=ORDER, key="customer", event_time="at")
    by_customer = stream.group_by("customer")
    by_customer.process("lists", lambda rows, state: rows, output=ORDER, states={"all": list_state("id BIGINT")})
    by_customer.process("values", lambda rows, state: rows, output=ORDER, states={"n": value_state("n BIGINT")})
    stream.group_by("customer", sliding("at", "1 minute", grace="1 minute")).aggregate("slid", n=count())
    moved = {"shops-lists-repartition", "shops-slid-repartition"} if orders != {"topic": "eu"} else set()
    assert {topic for topic in app.compile(spark).internal_topics if "repartition" in topic} == moved


MISTAKES: dict[str, tuple[Callable[[StreamsApp], Any], str]] = {
    "both": (lambda app: app.stream("a", pattern="b", schema=ORDER), "stream takes a topic, several"),
    "neither": (lambda app: app.stream(schema=ORDER), "stream takes a topic, several"),
    "no topic": (lambda app: app.stream([], schema=ORDER), "stream([]): name a topic at least"),
    "twice": (lambda app: app.stream(["a", "a"], schema=ORDER), "stream(['a', 'a']): 'a' is named twice"),
    "no pattern": (
        lambda app: app.stream(pattern="(", schema=ORDER),
        "stream(pattern='('): invalid regular",
    ),
    "read elsewhere": (
        lambda app: [app.stream("b", schema=ORDER), app.stream(["a", "b"], schema=ORDER)],
        "topic 'b' is read twice: it is a stream already",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_read_is_said(mistake: str) -> None:
    write, said = MISTAKES[mistake]
    with pytest.raises(ProgramError, match=re.escape(said)):
        write(StreamsApp("shops"))


def test_a_pattern_that_matches_what_is_written_is_refused(spark: SparkSession) -> None:
    app = StreamsApp("shops")
    app.stream(pattern="orders.*", schema=ORDER).to("orders-checked")
    program = app.compile(spark)
    with pytest.raises(ProgramError, match="it matches 'orders-checked', too, which the program writes"):
        with_topics(program, matched_topics(program, ["orders", "orders-checked"]))


def test_a_topic_that_comes_later_is_read_too(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    monkeypatch.setattr(topic_watch, "_LOOK_S", 0.2)
    create_topics(servers, "orders-eu", partitions=1)
    create_topics(servers, "counts")
    sending = producer(servers)

    def send(topic: str, *customers: str) -> None:
        for number, customer in enumerate(customers):
            sending.produce(topic, json.dumps(order(number, customer)))
        sending.flush()

    app = StreamsApp("shops", bootstrap_servers=servers, state_dir=tmp_path)
    orders = app.stream(pattern="orders-.*", schema=ORDER)
    orders.group_by("customer").aggregate("counts", n=count()).to("counts", key="customer")
    send("orders-eu", "ann", "bob", "ann")
    came = done = False

    def is_done() -> bool:
        nonlocal came, done
        found = {each.key(): json.loads(each.value() or b"")["n"] for each in read(servers, "counts")}
        if not came and found == {b"ann": 2, b"bob": 1}:
            came = True
            create_topics(servers, "orders-us", partitions=1)
            send("orders-us", *["ann"] * 5, "cid")
        done = found == {b"ann": 7, b"bob": 1, b"cid": 1}
        return done

    heard = Heard()
    run_until(app, spark, heard, is_done)
    assert done and not heard.failures
