"""Several streams in one aggregate."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark import ProgramError, StreamsApp, cogroup, count, last, sum_, window
from kohort.spark.program.streams import Stream
from kohort.spark.testing import TestDriver


def both(app: StreamsApp) -> tuple[Stream, Stream]:
    orders = app.stream("orders", schema="customer STRING, total BIGINT, at TIMESTAMP", key="customer", event_time="at")
    paid = app.stream("paid", schema="who STRING, sum BIGINT, at TIMESTAMP", event_time="at")
    return orders, paid.select("who AS customer", "sum", "at")


def test_each_result_is_of_its_stream(spark: SparkSession) -> None:
    app = StreamsApp("shop")
    orders, paid = both(app)
    totals = cogroup(orders=orders.group_by("customer"), payments=paid.group_by("customer"))
    totals.aggregate(
        "totals",
        orders={"n": count(), "owed": sum_("total"), "large": count(where="total > 10")},
        payments={"times": count(), "paid": sum_("sum"), "latest": last("sum")},
    ).to("totals", key="customer")
    assert app.describe(spark).count("topic: shop-totals-repartition") == 2
    with TestDriver(app, spark, partitions={"orders": 2, "paid": 3}) as driver:
        driver.pipe("orders", [{"customer": "ann", "total": 20, "at": "2013-01-01T00:00:00Z"}])
        (row,) = driver.output("totals")
        assert (row["customer"], row["n"], row["owed"], row["times"], row.get("paid")) == ("ann", 1, 20, 0, None)
        driver.pipe(
            "paid", [{"who": who, "sum": n, "at": "2013-01-01T00:00:00Z"} for who, n in (("ann", 5), ("bob", 1))]
        )
        driver.pipe("paid", [{"who": "ann", "sum": 6, "at": "2013-01-01T00:01:00Z"}])
        driver.pipe("orders", [{"customer": "ann", "total": 1, "at": "2013-01-01T00:00:00Z"}])
        rows = {row["customer"]: row for row in driver.output("totals")}
        wanted = ("n", "owed", "large", "times", "paid", "latest")
        assert {who: tuple(row.get(each) for each in wanted) for who, row in rows.items()} == {
            "ann": (2, 21, 1, 2, 11, 6), "bob": (0, None, 0, 1, 1, 1),
        }  # fmt: skip


def test_windows_close_by_the_times_of_all(spark: SparkSession) -> None:
    app = StreamsApp("shop")
    orders, paid = both(app)
    hour = window("at", "1 hour", grace="0 seconds")
    totals = cogroup(orders=orders.group_by("customer", hour), payments=paid.group_by("customer", hour))
    totals.aggregate("totals", emit="close", orders={"n": count()}, payments={"paid": sum_("sum")}).to("totals")
    with TestDriver(app, spark) as driver:
        driver.pipe("orders", [{"customer": "ann", "total": 20, "at": "2013-01-01T00:10:00Z"}])
        driver.pipe("paid", [{"who": "ann", "sum": 5, "at": "2013-01-01T00:20:00Z"}])
        assert driver.output("totals") == []
        driver.pipe("orders", [{"customer": "bob", "total": 20, "at": "2013-01-01T01:00:00Z"}])
        (row,) = driver.output("totals")
        assert (row["customer"], row["n"], row["paid"]) == ("ann", 1, 5)


def by_customer(a: Stream, b: Stream) -> Any:
    return cogroup(a=a.group_by("customer"), b=b.group_by("customer"))


MISTAKES: dict[str, tuple[Callable[[Any, Any, Any], Any], str]] = {
    "one": (lambda app, a, b: cogroup(a=a.group_by("customer")), "cogroup takes several streams"),
    "not grouped": (lambda app, a, b: cogroup(a=a, b=b.group_by("customer")), "cogroup(a=…) takes a grouped stream"),
    "emit": (
        lambda app, a, b: cogroup(a=a.group_by("customer"), emit=b.group_by("customer")),
        "cogroup(emit=…): aggregate has an argument of that name",
    ),
    "another's": (
        lambda app, a, b: cogroup(a=a.group_by("customer"), b=both(StreamsApp("x"))[1].group_by("customer")),
        "cogroup: 'b' is a stream of another StreamsApp",
    ),
    "grouped otherwise": (
        lambda app, a, b: cogroup(a=a.group_by("customer"), b=b.group_by("customer", window("at", "1 hour"))),
        "cogroup: 'b' is grouped otherwise than 'a'",
    ),
    "unknown": (
        lambda app, a, b: by_customer(a, b).aggregate("x", c={"n": count()}),
        "aggregate('x'): no stream is called 'c'; there are a, b",
    ),
    "not by name": (
        lambda app, a, b: by_customer(a, b).aggregate("x", a=count()),
        "aggregate('x', a=…): give its columns by name",
    ),
    "nothing of one": (
        lambda app, a, b: by_customer(a, b).aggregate("x", a={"n": count()}),
        "aggregate('x') computes nothing of 'b'",
    ),
    "twice": (
        lambda app, a, b: by_customer(a, b).aggregate("x", a={"n": count()}, b={"n": count()}),
        "aggregate('x'): two streams have a result 'n'",
    ),
    "no aggregate": (
        lambda app, a, b: by_customer(a, b).aggregate("x", a={"n": count}, b={"m": count()}),
        "aggregate('x', n=…): count is a function; call it",
    ),
    "two types": (
        lambda app, a, b: cogroup(
            a=a.group_by("customer"), b=b.select("customer", "at", "string(sum) AS total").group_by("customer")
        ).aggregate("x", a={"n": count()}, b={"m": count()}),
        "stream 'orders': cogroup: 'total' is BIGINT in stream 'orders', and STRING in stream 'paid'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_grouped_together_is_said(spark: SparkSession, mistake: str) -> None:
    write, said = MISTAKES[mistake]
    app = StreamsApp("shop")
    with pytest.raises(ProgramError, match=re.escape(said)):
        write(app, *both(app))
        app.compile(spark)
