"""Programs of the pages about streams applications, as they stand there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import kohort.spark
from kohort.spark import StreamsApp
from kohort.spark.testing import TestDriver

_DOCS = Path(__file__).parents[2] / "docs"


def program(page: str, heading: str, app: StreamsApp, **streams: Any) -> dict[str, Any]:
    """Runs the first program under a heading of a page."""
    found = re.search(rf"^#+ {heading}\n.*?```python\n(.*?)```", (_DOCS / page).read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None, heading
    scope = {name: getattr(kohort.spark, name) for name in kohort.spark.__all__}
    scope |= {"__name__": "guide", "app": app, **streams}
    exec(compile(found[1], f"docs/{page}, {heading}", "exec"), scope)
    return scope


def test_functions_that_keep_state(spark: SparkSession) -> None:
    app = StreamsApp("watching")
    readings = app.stream("readings", schema="sensor STRING, level INT, at TIMESTAMP", key="sensor", event_time="at")
    program("state.md", "Functions that keep state", app, readings=readings)

    def at(sensor: str, level: int, time: str) -> dict[str, Any]:
        return {"sensor": sensor, "level": level, "at": f"2013-01-01T00:{time}Z"}

    with TestDriver(app, spark) as driver:
        found: Callable[[], list[tuple[str, str]]] = lambda: [  # noqa: E731
            (row["sensor"], row["what"]) for row in driver.output("changes")
        ]
        driver.pipe("readings", [at("a", 1, "00:00"), at("a", 1, "00:20"), at("b", 5, "00:30"), at("a", 2, "00:40")])
        assert found() == [("a", "level 1"), ("b", "level 5"), ("a", "level 2")]
        driver.pipe("readings", [{"sensor": "c", "level": 1}])  # without a time no timer can be set
        assert found() == []
        driver.pipe("readings", [at("b", 5, "01:20")])
        assert found() == []
        driver.pipe("readings", [at("b", 6, "01:45")])
        assert found() == [("b", "level 6"), ("a", "silent")]


def test_joins_of_streams(spark: SparkSession) -> None:
    app = StreamsApp("paying")
    program("joins.md", "Joins of streams", app)
    with TestDriver(app, spark) as driver:
        driver.pipe("orders", [{"id": "1", "item": "tea", "at": "2013-01-01T05:00:00Z"}])
        driver.pipe("orders", [{"id": "2", "item": "jam", "at": "2013-01-01T05:10:00Z"}])
        driver.pipe("payments", [{"order": "1", "paid": 2.5, "when": "2013-01-01T05:30:00Z"}])
        assert [(row["id"], row["item"], row["paid"]) for row in driver.output("paid")] == [("1", "tea", 2.5)]
        driver.pipe("orders", [{"id": "3", "item": "egg", "at": "2013-01-01T07:00:00Z"}])
        assert driver.output("paid") == []
        driver.pipe("payments", [{"order": "9", "paid": 1.0, "when": "2013-01-01T07:00:00Z"}])
        assert [(row["id"], row["item"], row["paid"]) for row in driver.output("paid")] == [("2", "jam", None)]


def test_joins_as_of_a_time(spark: SparkSession) -> None:
    app = StreamsApp("rating")
    program("joins.md", "Joins as of a time", app)
    at = "2013-01-01T05:{}:00Z".format
    with TestDriver(app, spark) as driver:
        for rate, minute in ((2.0, 10), (3.0, 20)):
            driver.pipe("rates", [{"currency": "SEK", "rate": rate}], at=datetime.fromisoformat(at(minute)))
        driver.pipe("orders", [{"id": 1, "currency": "SEK", "price": 5.0, "at": at(15)}])
        driver.pipe("orders", [{"id": 2, "currency": "SEK", "price": 5.0, "at": at(25)}])
        assert [(row["id"], row["euros"]) for row in driver.output("orders-in-euros")] == [(1, 10.0)]


def test_rows_that_tie(spark: SparkSession) -> None:
    """With a column that is never null in the stream, and null where a place has no row any more."""
    app = StreamsApp("auctions")
    bids = app.stream("bids", schema="auction INT, price INT", key="auction").with_columns(one="1")
    program("state.md", "Rows that tie", app, bids=bids)
    with TestDriver(app, spark) as driver:
        driver.pipe("bids", [{"auction": 7, "price": price} for price in (5, 5, 3, 5, 5)])
        found = [(row["place"], row["rank"], row["price"], row["one"]) for row in driver.output("all-best-bids")]
        assert found == [(1, 1, 5, 1), (2, 1, 5, 1), (3, 1, 5, 1), (4, 1, 5, 1)]
        driver.pipe("bids", [{"auction": 7, "price": price} for price in (9, 8, 9)])
        values = driver.records("all-best-bids")["value"].to_pylist()[4:]
        best = [None if value is None else json.loads(value) for value in values]
        assert [row and (row["place"], row["rank"], row["price"]) for row in best] == [
            (1, 1, 9), (2, 1, 9), (3, 3, 8), None
        ]  # fmt: skip
        assert [row["rank"] for row in driver.store("bids-top-auction").to_arrow().to_pylist()] == [1, 1, 3]


def test_aggregates_of_aggregates(spark: SparkSession) -> None:
    app = StreamsApp("bidding")
    bids = app.stream("bids", schema="auction INT, dateTime TIMESTAMP", event_time="dateTime")
    program("aggregates.md", "Aggregates of aggregates", app, bids=bids)
    with TestDriver(app, spark) as driver:
        times = ["00:00:01", "00:00:01", "00:00:05", "00:01:00"]
        driver.pipe(
            "bids",
            [
                {"auction": auction, "dateTime": f"2013-01-01T{at}Z"}
                for at, auction in zip(times, [1, 1, 2, 3], strict=True)
            ],
        )
        most = {row["window"][17:19]: row["n"] for row in driver.output("most-bids")}
        assert most == {"52": 2, "54": 2, "56": 2, "58": 2, "00": 2, "02": 1, "04": 1}


def test_tables_as_values(spark: SparkSession) -> None:
    app = StreamsApp("items")
    program("streams-and-tables.md", "Tables as values", app)
    with TestDriver(app, spark) as driver:
        driver.pipe("items", [{"id": 1, "kind": "tea", "price": 2.5}, {"id": 2, "kind": "tea", "price": 20.0}])
        assert driver.output("kinds") == [{"kind": "tea", "n": 2, "total": 22.5, "most": 20.0}]
        driver.pipe("items", [{"id": 2, "kind": "jam", "price": 3.0}])
        assert sorted(row["kind"] for row in driver.output("kinds")) == ["jam", "tea"]
        assert [row["before"]["kind"] for row in driver.output("moved")] == ["tea"]
        assert driver.output("cheap-items")[-1] == {"id": 2, "kind": "jam", "price": 3.0, "cents": 300}


def test_own_aggregates_of_tables(spark: SparkSession) -> None:
    """Groups that nothing leaves, and those that something leaves later."""
    app = StreamsApp("items")
    found = re.search(r"```python\n(spread = aggregation\(.*?)```", (_DOCS / "aggregates.md").read_text(), re.DOTALL)
    assert found is not None
    scope = {name: getattr(kohort.spark, name) for name in kohort.spark.__all__} | {"F": F}
    exec(compile(found[1], "docs/aggregates.md, spread", "exec"), scope)
    items = app.table("items", schema="id BIGINT, kind STRING, price DOUBLE", key="id")
    items.group_by("kind").aggregate("kinds", mean=scope["spread"]).to("kinds", key="kind")
    with TestDriver(app, spark) as driver:
        driver.pipe("items", [{"id": 1, "kind": "tea", "price": 2.0}, {"id": 2, "kind": "tea", "price": 4.0}])
        assert driver.output("kinds") == [{"kind": "tea", "mean": 3.0}]
        driver.pipe("items", [{"id": 3, "kind": "tea", "price": 9.0}])
        assert driver.output("kinds") == [{"kind": "tea", "mean": 5.0}]
        driver.pipe("items", [{"id": 3, "kind": "jam", "price": 9.0}])
        assert sorted(driver.output("kinds"), key=str) == [
            {"kind": "jam", "mean": 9.0}, {"kind": "tea", "mean": 3.0}
        ]  # fmt: skip
