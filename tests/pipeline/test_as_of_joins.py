"""Joins of streams with tables as they were at each row's event time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark import ProgramError, StreamsApp, count, max_, window
from kohort.spark.testing import TestDriver

ORDER = "id BIGINT, currency STRING, at TIMESTAMP"
RATE = "currency STRING, rate DOUBLE"
Driver = Callable[..., TestDriver]


def made() -> StreamsApp:
    return StreamsApp("as-of", bootstrap_servers="127.0.0.1:1")


def at(minute: int) -> datetime:
    return datetime(2013, 1, 1, 12, minute, tzinfo=UTC)


def order(number: int, minute: int, currency: str | None = "EUR") -> dict[str, Any]:
    return {"id": number, "currency": currency, "at": at(minute)}


def orders_of(app: StreamsApp) -> Any:
    return app.stream("orders", schema=ORDER, event_time="at")


def found(driver: TestDriver) -> list[tuple[int, float | None]]:
    return [(row["id"], row.get("rate")) for row in driver.output("out")]


def test_rows_meet_what_the_table_had_at_their_time(kohort_test_driver: Driver) -> None:
    app = made()
    rates = app.table("rates", schema=RATE, key="currency")
    orders_of(app).join_as_of(rates, how="left", history="1 hour", name="rated").to("out")
    driver = kohort_test_driver(app)
    for rate, minute in ((1.0, 10), (3.0, 30), (2.0, 20)):
        driver.pipe("rates", [{"currency": "EUR", "rate": rate}], at=at(minute))
    driver.delete("rates", "EUR", at=at(40))
    driver.pipe("orders", [order(minute, minute) for minute in (45, 35, 25, 10, 5)] + [order(1, 50, None)])
    assert found(driver) == [(45, None), (35, 3.0), (25, 2.0), (10, 1.0), (5, None), (1, None)]
    assert [since for _, since in driver.store("rated-versions")] == [
        round(at(minute).timestamp() * 1000) for minute in (10, 20, 30, 40)
    ]


def test_rows_of_a_table_that_is_made_of_a_stream_have_its_event_times(kohort_test_driver: Driver) -> None:
    app = made()
    quotes = app.stream(
        "quotes", schema="symbol STRING, price DOUBLE, `when` TIMESTAMP, gone BOOLEAN", event_time="when"
    )
    rates = quotes.to_table("symbol", deleted="gone")
    joined = orders_of(app).join_as_of(rates, {"currency": "symbol"}, history="1 hour", columns={"price": "rate"})
    joined.to("out")
    driver = kohort_test_driver(app)
    for price, minute, gone in ((1.0, 10, False), (0.0, 30, True), (2.0, 20, False), (3.0, 50, False)):
        driver.pipe("quotes", [{"symbol": "EUR", "price": price, "when": at(minute), "gone": gone}])
    driver.pipe("orders", [order(minute, minute) for minute in (55, 15, 25, 35)])
    assert found(driver) == [(55, 3.0), (15, 1.0), (25, 2.0)]


def test_rows_wait_for_the_grace_and_windows_take_them_then(kohort_test_driver: Driver) -> None:
    app = made()
    rates = app.table("rates", schema=RATE, key="currency")
    joined = orders_of(app).join_as_of(rates, how="left", history="1 hour", grace="5 minutes")
    joined.to("out")
    with_cents = joined.with_columns(cents="cast(rate * 100 AS INT)")
    counted = with_cents.group_by("cents", window("at", "10 minutes", grace="5 minutes"))
    counted.aggregate("orders-by-rate", emit="close", n=count()).to("counted")
    driver = kohort_test_driver(app)
    driver.pipe("orders", [order(1, 10), order(2, 14)])
    assert found(driver) == []
    driver.pipe("rates", [{"currency": "EUR", "rate": 1.5}], at=at(11))
    driver.pipe("rates", [{"currency": "EUR", "rate": 1.0}], at=at(9))
    driver.pipe("orders", [order(3, 40)])
    assert found(driver) == [(1, 1.0), (2, 1.5)]
    assert driver.late == 0
    driver.pipe("orders", [order(4, 12)])
    assert found(driver) == [(4, 1.5)]  # late, so it doesn't wait
    assert driver.late == 1  # for its window
    driver.pipe("orders", [order(5, 59)])
    assert found(driver) == [(3, 1.5)]  # with which time goes on for windows
    assert {(row["cents"], row["n"]) for row in driver.output("counted")} == {(100, 1), (150, 1)}


def test_a_window_that_is_merged_in_place_takes_rows_that_have_waited(kohort_test_driver: Driver) -> None:
    app = made()
    rates = app.table("rates", schema=RATE, key="currency")
    joined = orders_of(app).join_as_of(rates, history="1 hour", grace="5 minutes")
    counted = joined.group_by("currency", window("at", "10 minutes", grace="5 minutes"))
    counted.aggregate("orders-by-currency", emit="close", n=count(), most=max_("rate")).to("counted")
    driver = kohort_test_driver(app)
    driver.pipe("orders", [order(1, 11), order(2, 14)])
    driver.pipe("rates", [{"currency": "EUR", "rate": 1.5}], at=at(10))
    driver.pipe("orders", [order(3, 50)])  # far beyond the end of the window that both are in
    driver.pipe("orders", [order(4, 12)])  # late
    driver.pipe("orders", [order(5, 59)])
    assert [(row["n"], row["most"]) for row in driver.output("counted")] == [(2, 1.5)]
    assert driver.late == 1


def test_the_history_bounds_what_is_kept_and_what_is_older_is_counted(kohort_test_driver: Driver) -> None:
    app = made()
    rates = app.table("rates", schema=RATE, key="currency")
    orders_of(app).join_as_of(rates, history="10 minutes", name="rated").to("out")
    driver = kohort_test_driver(app)
    for minute in range(0, 60, 3):
        driver.pipe("rates", [{"currency": "EUR", "rate": float(minute)}], at=at(minute))
    driver.pipe("rates", [{"currency": "USD", "rate": 1.0}], at=at(55))
    assert len(driver.store("rated-versions")) == 21  # the stream may still ask for all
    driver.pipe("orders", [order(0, 58, None)])
    assert len(driver.store("rated-versions")) == 6
    driver.pipe("rates", [{"currency": "EUR", "rate": 0.5}], at=at(45))
    driver.pipe("orders", [order(1, 50), order(2, 46), order(3, 58)])
    assert found(driver) == [(1, 48.0), (3, 57.0)]
    assert driver.late == 2


def test_what_cannot_be_joined_as_of_a_time_is_refused(spark: SparkSession) -> None:
    def refused(join: Callable[[StreamsApp, Any], Any], match: str) -> None:
        app = made()
        with pytest.raises(ProgramError, match=match):
            join(app, orders_of(app)).to("out")
            app.compile(spark)

    def rates(app: StreamsApp) -> Any:
        return app.table("rates", schema=RATE, key="currency")

    hour: Any = {"history": "1 hour"}
    refused(lambda app, orders: orders.join_as_of(orders, **hour), "takes a table, not .*: make a table of it")
    refused(
        lambda app, orders: orders.join_as_of(app.global_table("rates", schema=RATE, key="currency"), **hour),
        "every instance has all of GlobalTable",
    )
    refused(lambda app, orders: orders.join_as_of(rates(app), how="outer", **hour), '"inner" or "left"')
    refused(lambda app, orders: orders.join_as_of(rates(app), history="1 minute", grace="1 hour"), "at least the grace")
    refused(
        lambda app, orders: orders.select("id", "currency").join_as_of(rates(app), **hour),
        "join_as_of goes by the event time, 'at', and a transform before it loses that",
    )
    refused(
        lambda app, orders: orders.join_as_of(
            orders.group_by("currency").aggregate("best", best=max_("id")).as_table().where("best > 1"), **hour
        ),
        "the rows of aggregate 'best' have the largest time of an epoch's rows.*to_table of a stream with times of its "
        r"own.*or join it as it is now, \.join\(…\)",
    )
    refused(
        lambda app, orders: orders.join_as_of(
            rates(app).join(orders.to_table("currency"), name="both").select("currency", "rate"), **hour
        ),
        "have the largest time of an epoch's rows.*to_table of a stream with times of its own",
    )
    refused(
        lambda app, orders: orders.with_columns(_Since="id").join_as_of(rates(app), **hour),
        "'_Since' is a name that joins as of a time have for themselves: rename it",
    )
    refused(
        lambda app, orders: orders.join_as_of(rates(app), columns={"rate": "_timed"}, **hour),
        "'_timed' is a name that joins as of a time have for themselves: rename it",
    )
    refused(
        lambda app, orders: app.stream("rows", schema="currency STRING").join_as_of(
            orders.to_table("currency").select("currency", "id"), **hour
        ),
        "join_as_of goes by the event time, 'at', and a transform before it loses that",
    )
