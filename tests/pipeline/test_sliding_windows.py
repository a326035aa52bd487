"""Sliding windows, and what they are refused for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark import ProgramError, StreamsApp, approx_distinct, avg, collect, count, last, max_, sliding
from kohort.spark.testing import TestDriver

PAYMENT = "card STRING, shop STRING, amount INT, at TIMESTAMP"


def an_app(servers: str, state: Path) -> StreamsApp:
    """By the stream's key, with aggregates that Arrow merges; and by another, with those that Spark does."""
    app = StreamsApp("payments", bootstrap_servers=servers, state_dir=state)
    payments = app.stream("payments", schema=PAYMENT, key="card", event_time="at")
    by_card = payments.group_by("card", sliding("at", "10 seconds", grace="5 seconds", end="until"))
    by_card.aggregate("cards", n=count(), most=max_("amount"), mean=avg("amount")).to("cards")
    by_shop = payments.group_by("shop", sliding("at", "10 seconds", grace="5 seconds", retention="1 minute"))
    by_shop.aggregate(
        "shops",
        emit="close",
        n=count(),
        cards=approx_distinct("card"),
        all=collect("amount", limit=9),
        last=last("amount"),
    ).to("shops")
    return app


def payment(card: str, shop: str, amount: int, second: int) -> dict[str, Any]:
    return {"card": card, "shop": shop, "amount": amount, "at": f"2013-01-01T00:{second // 60:02}:{second % 60:02}Z"}


def test_windows_lie_where_rows_do(spark: SparkSession, tmp_path: Path) -> None:
    with TestDriver(an_app("localhost:9092", tmp_path), spark) as driver:

        def cards() -> dict[str, tuple[str, int, int, float]]:
            rows = driver.output("cards")
            assert {row["card"] for row in rows} <= {"x"}
            return {row["window"][17:23]: (row["until"][17:23], row["n"], row["most"], row["mean"]) for row in rows}

        driver.pipe("payments", [payment("x", "a", 5, 20), payment("x", "a", 1, 26)])
        assert cards() == {
            "10.000": ("20.000", 1, 5, 5.0),
            "16.000": ("26.000", 2, 5, 3.0),
            "20.001": ("30.001", 1, 1, 1.0),
        }
        driver.pipe("payments", [payment("x", "a", 9, 23)])
        assert cards() == {
            "13.000": ("23.000", 2, 9, 7.0),
            "16.000": ("26.000", 3, 9, 5.0),
            "20.001": ("30.001", 2, 9, 5.0),
            "23.001": ("33.001", 1, 1, 1.0),
        }
        assert [row["n"] for row in driver.output("shops")] == [1]  # 20 s and the grace are over at 26 s
        driver.pipe("payments", [payment("y", "b", 7, 90), payment("x", "a", 99, 20)])
        rows = {
            row["window"][17:23]: (row["n"], row["cards"], row["all"], row["last"]) for row in driver.output("shops")
        }
        assert rows == {
            "13.000": (2, 1, [5, 9], 9),
            "16.000": (3, 1, [5, 9, 1], 1),
            "20.001": (2, 1, [9, 1], 1),
            "23.001": (1, 1, [1], 1),
        }
        assert list(driver.store("shops")) == [("2013-01-01T00:01:20.000Z", "b")]


def test_rows_are_kept_in_a_store_that_forgets_them(spark: SparkSession, tmp_path: Path) -> None:
    app = an_app("localhost:9092", tmp_path)
    described = app.describe(spark)
    assert "KSTREAM-WINDOW" in described and "(stores: [cards-rows])" in described
    program = app.compile(spark)
    (moved,) = (topic for each in program.topology.subtopologies.values() for topic in each.repartition_sources)
    assert moved.name == "payments-shops-repartition"
    changelogs = [topic for each in program.topology.subtopologies.values() for topic in each.changelogs]
    kept = {each.name: each.configs["cleanup.policy"] for each in changelogs}
    assert kept["payments-cards-rows-changelog"] == "compact,delete" and kept["payments-cards-changelog"] == "compact"


def test_what_has_no_sliding_windows_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ProgramError, match=r"retention='1 minute' isn't longer than difference and grace together"):
        sliding("at", "50 seconds", grace="10 seconds", retention="1 minute")
    app = StreamsApp("refused")
    payments = app.stream("payments", schema=PAYMENT)
    by_card = payments.group_by("card", sliding("at", "1 minute", grace="0 seconds"))
    with pytest.raises(ProgramError, match="ranks are of tumbling and hopping windows"):
        by_card.top(3, by="amount")
    by_card.aggregate("cards", n=count()).to("cards")
    with pytest.raises(ProgramError, match=r"has a grace, which goes by the stream's event time"):
        app.compile(spark)
