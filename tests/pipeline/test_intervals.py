"""Columns of intervals: in outputs, and told of at once where they can't be moved or kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark import ProgramError, StreamsApp, collect, count, count_distinct, first, max_, value_state
from kohort.spark.program.streams import Stream
from kohort.spark.testing import TestDriver

KINDS = {"INTERVAL YEAR TO MONTH": "make_ym_interval(0, n)", "INTERVAL DAY TO SECOND": "make_dt_interval(0, 0, n)"}


def nothing(rows: Any, state: Any) -> None:
    return None


def streams(app: StreamsApp, kind: str) -> tuple[Stream, Stream]:
    """A stream without intervals, and it with a column of some."""
    plain = app.stream("rows", schema="k STRING, n INT, at TIMESTAMP", key="k", event_time="at")
    return plain, plain.with_columns(age=KINDS[kind])


def test_intervals_are_texts_in_json_and_numbers_where_they_are_made_such(spark: SparkSession) -> None:
    app = StreamsApp("ages")
    _, rows = streams(app, "INTERVAL YEAR TO MONTH")
    rows.to("ages", key="age")
    rows.to_table("k").to("table")
    rows.with_columns(due="at + age").select("k", "due").repartition("k").to("dues")
    ages = rows.group_by("k").aggregate("ages", n=count("age"), different=count_distinct("age"))
    ages.to("counts", key="k")
    with TestDriver(app, spark) as driver:
        given = [{"k": "a", "n": n, "at": "2013-01-31T00:00:00Z"} for n in (1, 13, 13)]
        driver.pipe("rows", given)
        texts = [f"INTERVAL '{age}' YEAR TO MONTH" for age in ("0-1", "1-1", "1-1")]
        assert [row["age"] for row in driver.output("ages")] == texts
        assert [row["age"] for row in driver.output("table")] == texts
        assert [key.decode() for key in driver.records("ages")["key"].to_pylist()] == texts
        assert [row["due"][:10] for row in driver.output("dues")] == ["2013-02-28", "2014-02-28", "2014-02-28"]
        assert driver.output("counts") == [{"k": "a", "n": 3, "different": 2}]
        driver.pipe("rows", given[:1])
        assert driver.output("counts") == [{"k": "a", "n": 4, "different": 2}]


Program = Callable[[StreamsApp, Stream, Stream, str], Any]
REFUSED: dict[str, Program] = {
    "a source's": lambda app, plain, rows, kind: app.stream("s", schema=f"age {kind}").to("x"),
    "a table's": lambda app, plain, rows, kind: app.table("t", schema=f"k STRING, age {kind}", key="k").to("x"),
    "in Avro": lambda app, plain, rows, kind: rows.to("x", format="avro"),
    "in CSV": lambda app, plain, rows, kind: rows.to("x", format="csv"),
    "repartitioned": lambda app, plain, rows, kind: rows.repartition("n").to("x"),
    "as a state": lambda app, plain, rows, kind: rows.group_by("k").aggregate("x", age=max_("age")).to("x"),
    "the first": lambda app, plain, rows, kind: rows.group_by("k").aggregate("x", age=first("age")).to("x"),
    "collected": lambda app, plain, rows, kind: rows.group_by("k").aggregate("x", age=collect("age", 3)).to("x"),
    "a table's change": lambda app, plain, rows, kind: rows.to_table("k").changes().select("k").to("x"),
    "what ranks": lambda app, plain, rows, kind: rows.group_by("k").top(3, by="n").to("x"),
    "a function's": lambda app, plain, rows, kind: (
        rows.group_by("k").process("p", nothing, output="k STRING").to("x")
    ),
    "what a function gives": lambda app, plain, rows, kind: (
        plain.group_by("k").process("p", nothing, output=f"k STRING, age {kind}").to("x")
    ),
    "a function's state": lambda app, plain, rows, kind: (
        plain.group_by("k").process("p", nothing, output="k STRING", states={"l": value_state(f"age {kind}")}).to("x")
    ),
    "of a join of streams": lambda app, plain, rows, kind: rows.select("k", "age", "at AS `then`").join_stream(
        plain, on="k", within="1 hour", grace="1 hour"
    ).to("x"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_that_cannot_be_kept_are_told_of(spark: SparkSession, kind: str, what: str) -> None:
    app = StreamsApp("ages")
    plain, rows = streams(app, kind)
    plain.to("y")
    with pytest.raises(ProgramError, match=f"{kind.lower()} can't be read or written: make a text or a number of it"):
        REFUSED[what](app, plain, rows, kind)
        app.compile(spark)


MOVED: dict[str, Callable[[StreamsApp, Stream], Any]] = {
    "joined": lambda app, rows: rows.join(app.table("t", schema="k STRING, name STRING", key="k")).to("x"),
    "in a batch": lambda app, rows: rows.for_each_batch(nothing),
    "aggregated in Arrow": lambda app, rows: rows.group_by("k").aggregate_arrow("x", nothing, state="m INT").to("x"),
}


@pytest.mark.parametrize("what", MOVED)
def test_months_that_spark_does_not_give_to_python_are_told_of(spark: SparkSession, what: str) -> None:
    app = StreamsApp("ages")
    _, rows = streams(app, "INTERVAL YEAR TO MONTH")
    MOVED[what](app, rows)
    with pytest.raises(ProgramError, match="age is INTERVAL YEAR TO MONTH, which can't be moved: make a text or a num"):
        app.compile(spark)
