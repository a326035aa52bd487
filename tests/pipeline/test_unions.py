"""Streams that are united, and what may come after that."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark import ProgramError, StreamsApp, count, max_, sum_, window
from kohort.spark.program.compiled import PartialsInput, ToRows
from kohort.spark.program.streams import Stream
from kohort.spark.runtime.planning import application_plan_of
from kohort.spark.runtime.subtopology_plan import TopicOutput
from kohort.spark.testing import TestDriver

ORDER = "id BIGINT, customer STRING, at TIMESTAMP"


def order(number: int, customer: str, minute: int = 0) -> dict[str, Any]:
    return {"id": number, "customer": customer, "at": f"2013-01-01T00:{minute:02}:00Z"}


def both(app: StreamsApp) -> tuple[Stream, Stream]:
    return (
        app.stream("eu", schema=ORDER, key="customer", event_time="at"),
        app.stream("us", schema=f"{ORDER}, state STRING", key="customer", event_time="at"),
    )


def test_what_goes_row_by_row_needs_no_topic(spark: SparkSession) -> None:
    app = StreamsApp("shops")
    eu, us = both(app)
    zones = app.global_table("zones", schema="customer STRING, zone STRING", key="customer")
    united = eu.union(us, allow_missing_columns=True).where("id > 1").join(zones, "customer", how="left")
    united.to("all", key="customer")
    assert not app.compile(spark).internal_topics
    with TestDriver(app, spark) as driver:
        driver.pipe("zones", [{"customer": "bob", "zone": "b"}])
        driver.pipe("eu", [order(1, "ann"), order(2, "bob")])
        driver.pipe("us", [order(3, "cid") | {"state": "NY"}])
        rows = [(row["id"], row.get("state"), row.get("zone")) for row in driver.output("all")]
        assert rows == [(2, None, "b"), (3, "NY", None)]


def test_aggregates_are_over_all_rows(spark: SparkSession) -> None:
    app = StreamsApp("shops")
    eu, us = both(app)
    united = eu.union(us.select("at", "customer", "id"))
    united.group_by("customer", window("at", "10 minutes", grace="1 minute")).aggregate(
        "counts", n=count(), ids=sum_("id"), last=max_("id")
    ).to("counts")
    with TestDriver(app, spark, partitions=2) as driver:
        for number, topic in enumerate(["eu", "us"] * 3):
            driver.pipe(topic, [order(number, "ann", number), order(10 + number, "bob", 8)])
        found = {(row["customer"], row["window"][14:16]): row for row in driver.output("counts")}
        assert {key: (row["n"], row["ids"], row["last"]) for key, row in found.items()} == {
            ("ann", "00"): (6, 15, 5), ("bob", "00"): (6, 75, 15),
        }  # fmt: skip


def test_what_several_branches_make_meets_in_the_topic(spark: SparkSession) -> None:
    app = StreamsApp("shops")
    eu = app.stream("eu", schema=ORDER, key="customer", event_time="at")
    eu.union(eu.where("id > 1")).group_by("id").aggregate("counts", n=count()).to("counts")
    eu.group_by("at").aggregate("times", n=count())
    plan = application_plan_of(app.compile(spark))
    outputs = [each for part in plan.subtopologies.values() for each in part.branches.values()]
    merged = {each.topic: each.merged_by for each in outputs if isinstance(each, TopicOutput)}
    assert merged == {"shops-counts-repartition": None, "shops-times-repartition": "2"}
    with TestDriver(app, spark) as driver:
        driver.pipe("eu", [order(1, "ann"), order(2, "bob")])
        assert [(row["id"], row["n"]) for row in driver.output("counts")] == [(1, 1), (2, 2)]


def test_parts_of_one_topic_do_not_make_each_other_late(spark: SparkSession) -> None:
    app = StreamsApp("shops")
    eu = app.stream("eu", schema=ORDER, key="customer", event_time="at")
    united = eu.union(eu.where("id > 1"))
    by_minute = united.group_by("customer", window("at", "10 minutes", grace="1 minute"))
    by_minute.aggregate("counts", emit="close", n=count()).to("counts")
    united.dedupe("at", within="10 minutes", name="once").to("once")
    with TestDriver(app, spark) as driver:
        driver.pipe("eu", [order(2, "ann"), order(3, "ann", 30), order(4, "ann", 50)])
        assert driver.late == 0
        assert [row["n"] for row in driver.output("counts")] == [2, 2]
        assert [row["id"] for row in driver.output("once")] == [2, 3, 4]


def test_state_is_kept_for_all_of_them(spark: SparkSession) -> None:
    app = StreamsApp("shops")
    eu, us = both(app)
    union = eu.union(us.select("id", "customer", "at AS ordered"), allow_missing_columns=True)
    once = union.dedupe("id", name="once")
    once.to("once")
    paid = app.stream("paid", schema="order BIGINT, sum BIGINT")
    paid.union(paid.where("sum > 5")).join_stream(
        eu.union(us.select("id", "customer", "at")), on={"order": "id"}, within="1 day", grace="1 day", name="j"
    ).select("order", "sum", "customer").to("joined")
    program = app.compile(spark)
    assert sum(isinstance(each.input, PartialsInput) for each in program.subtopologies) == 0
    with TestDriver(app, spark, now=1356998400000) as driver:
        driver.pipe("eu", [order(1, "ann"), order(2, "bob")])
        driver.pipe("us", [order(1, "eve"), order(3, "cid")])
        assert sorted((row["id"], row["customer"]) for row in driver.output("once")) == [
            (1, "ann"), (2, "bob"), (3, "cid"),
        ]  # fmt: skip
        driver.pipe("paid", [{"order": 3, "sum": 7}, {"order": 2, "sum": 1}])
        assert sorted((row["order"], row["customer"]) for row in driver.output("joined")) == [
            (2, "bob"), (3, "cid"), (3, "cid"),
        ]  # fmt: skip


def test_unions_of_unions_are_described(spark: SparkSession) -> None:
    app = StreamsApp("shops")
    eu, us = both(app)
    later = eu.union(us.select("id", "customer", "at")).with_columns(n="id + 1")
    later.union(eu.with_columns(n="0L")).repartition("id", name="by-id").to("out")
    text = app.describe(spark)
    assert text.count("topic: shops-by-id-repartition") == 3
    assert text.count("Sub-topology") == 3
    with TestDriver(app, spark) as driver:
        driver.pipe("eu", [order(1, "ann")])
        driver.pipe("us", [order(2, "bob")])
        assert [json.dumps([row["id"], row["n"]]) for row in driver.output("out")] == ["[1, 2]", "[1, 0]", "[2, 3]"]


def test_a_column_may_be_null_if_it_may_be_in_any_stream(spark: SparkSession) -> None:
    app = StreamsApp("shops")
    eu, us = both(app)
    rated = eu.with_columns(rate="1.0D", zone="'eu'", now="at")
    rated.union(us.with_columns(zone="'us'", now="at"), allow_missing_columns=True).repartition("id").to("out")
    branches = [branch for each in app.compile(spark).subtopologies for branch in each.branches]
    schemas = [branch.terminal.schema for branch in branches if isinstance(branch.terminal, ToRows)]
    assert len(schemas) == 2 and schemas[0] == schemas[1]
    assert (schemas[0]["rate"].nullable, schemas[0]["zone"].nullable) == (True, False)
    assert {branch.terminal.event_time for branch in branches if isinstance(branch.terminal, ToRows)} == {"at"}


MISTAKES: dict[str, tuple[Callable[[Any, Any, Any], Any], str]] = {
    "nothing": (lambda app, eu, us: eu.union(), "union takes other streams"),
    "no stream": (lambda app, eu, us: eu.union(app), "union takes streams, not StreamsApp('shops')"),
    "another's": (lambda app, eu, us: eu.union(both(StreamsApp("b"))[0]), "a stream of another StreamsApp"),
    "a column more": (
        lambda app, eu, us: eu.union(us).to("x"),
        "stream 'eu': union: stream 'eu' has no column 'state', which stream 'us' has: add it, or say allow_missing",
    ),
    "other types": (
        lambda app, eu, us: eu.union(us.select("int(id) AS id", "customer", "at")).to("x"),
        "union: 'id' is BIGINT in stream 'eu', and INT in stream 'us'",
    ),
    "several times": (
        lambda app, eu, us: (
            eu.union(us.select("id", "at AS ordered"), allow_missing_columns=True)
            .group_by("id")
            .aggregate("x", n=count())
        ),
        "the event time of what is united is in several columns (at of stream 'eu'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_united_is_said(spark: SparkSession, mistake: str) -> None:
    write, said = MISTAKES[mistake]
    app = StreamsApp("shops")
    with pytest.raises(ProgramError, match=re.escape(said)):
        write(app, *both(app))
        app.compile(spark)
