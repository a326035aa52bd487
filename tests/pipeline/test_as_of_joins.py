"""Joins of streams with tables as they were at each row's event time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kohort.cli.demo.processes import Child
from kohort.spark import ProgramError, StreamsApp, count, max_, value_state, window
from kohort.spark.testing import TestDriver
from kohort.testing.broker import Broker
from tests.marks import long
from tests.waiting import eventually

from .applications import Heard, create_topics, read, run_until
from .as_of_program import COUNT, batch, given, rated_app, seen, send_orders, send_rates

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
        f"2013-01-01T12:{minute}:00.000Z" for minute in (10, 20, 30, 40)
    ]


def test_a_deletion_ends_a_version_where_the_table_has_its_records_times(kohort_test_driver: Driver) -> None:
    app = made()
    rates = app.table("rates", schema=f"{RATE}, _timestamp TIMESTAMP", key="currency")
    orders_of(app).join_as_of(rates, how="left", history="1 hour", columns=["rate"]).to("out")
    driver = kohort_test_driver(app)
    driver.pipe("rates", [{"currency": "EUR", "rate": 1.0}], at=at(10))
    driver.delete("rates", "EUR", at=at(30))
    driver.pipe("orders", [order(minute, minute) for minute in (20, 40)])
    assert found(driver) == [(20, 1.0), (40, None)]
    assert not any(driver.dropped.values())


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


FLIGHT = "carrier STRING, delay DOUBLE, `when` TIMESTAMP"
CARRIED = "id BIGINT, carrier STRING, since TIMESTAMP, at TIMESTAMP"
DELAYS = [
    ("AA", 10.0, 5),
    ("AA", 20.0, 6),
    ("BB", 1.0, 9),
    ("AA", 5.0, 14),
    ("BB", 3.0, 15),
    ("AA", 7.0, 24),
    ("CC", 0.0, 59),
]


def in_cuts(driver: TestDriver, size: int) -> None:
    """Pipes flights, so many in an epoch, and then orders of several times."""
    flights = [{"carrier": carrier, "delay": delay, "when": at(minute)} for carrier, delay, minute in DELAYS]
    for start in range(0, len(flights), size):
        driver.pipe("flights", flights[start : start + size])
    minutes = (12, 22, 5, 35, 15)
    driver.pipe(
        "orders", [{"id": each, "carrier": "AA", "since": at(each // 10 * 10), "at": at(each)} for each in minutes]
    )


@pytest.mark.parametrize("size", [*long(1, 7), 3])
def test_windows_are_versions_however_epochs_are_cut(kohort_test_driver: Driver, size: int) -> None:
    """Closed ones from their ends on, for whatever is read after; and each by itself, from its start on."""
    app = made()
    flights = app.stream("flights", schema=FLIGHT, event_time="when")
    by_carrier = flights.group_by("carrier", window("when", "10 minutes", grace="0 seconds", end="until"))
    closed = by_carrier.aggregate("worst", emit="close", delay=max_("delay"))
    worst = closed.as_stream().select("carrier", "until AS window", "delay").to_table("carrier", name="closed")
    orders = app.stream("orders", schema=CARRIED, event_time="at")
    orders.join_as_of(worst, how="left", history="1 day", name="after").to("out")
    of_window = by_carrier.aggregate("flights", n=count()).as_table()
    on = {"since": "window", "carrier": "carrier"}
    orders.join_as_of(of_window, on, history="1 day", columns=["n"], name="within").to("counted")
    driver = kohort_test_driver(app)
    in_cuts(driver, size)
    assert [(row["id"], row.get("delay")) for row in driver.output("out")] == [
        (12, 20.0), (22, 5.0), (5, None), (35, 7.0), (15, 20.0)
    ]  # fmt: skip
    assert sorted((row["id"], row["n"]) for row in driver.output("counted")) == [(5, 2), (12, 1), (15, 1), (22, 1)]


def closed_joined(kohort_test_driver: Driver, size: int, grace: str) -> list[tuple[int, float | None]]:
    """What orders meet of closed windows, if both are read in the order of their times, so many rows in an epoch."""
    app = made()
    flights = app.stream("flights", schema=FLIGHT, event_time="when")
    by_carrier = flights.group_by("carrier", window("when", "10 minutes", grace="0 seconds", end="until"))
    closed = by_carrier.aggregate("worst", emit="close", delay=max_("delay"))
    worst = closed.as_stream().select("carrier", "until AS window", "delay").to_table("carrier", name="closed")
    orders = app.stream("orders", schema=CARRIED, event_time="at")
    orders.join_as_of(worst, how="left", history="1 day", grace=grace, name="after").to("out")
    driver = kohort_test_driver(app)
    rows: list[tuple[datetime, str, dict[str, Any]]] = [
        (at(minute), "flights", {"carrier": carrier, "delay": delay, "when": at(minute)})
        for carrier, delay, minute in DELAYS
    ]
    rows += [
        (at(minute), "orders", {"id": minute, "carrier": "AA", "at": at(minute)}) for minute in (5, 12, 15, 22, 35)
    ]
    rows.sort(key=lambda row: row[0])
    for start in range(0, len(rows), size):
        for _, topic, row in rows[start : start + size]:
            driver.pipe(topic, [row], step=False)
        driver.step()
    driver.pipe("orders", [{"id": 99, "carrier": "AA", "at": at(59) + timedelta(hours=1)}])
    return [(number, row["delay"]) for row in driver.output("out") if (number := row["id"]) != 99]


@pytest.mark.parametrize("size", [*long(1, 12), 4])
def test_with_a_grace_rows_meet_closed_windows_however_both_are_cut(kohort_test_driver: Driver, size: int) -> None:
    """An order waits for the flight that closes its window, and for the window's way through a topic."""
    expected = [(5, None), (12, 20.0), (15, 20.0), (22, 5.0), (35, 7.0)]
    assert closed_joined(kohort_test_driver, size, "1 hour") == expected


def test_without_a_grace_rows_meet_what_was_closed_in_epochs_before(kohort_test_driver: Driver) -> None:
    assert closed_joined(kohort_test_driver, 12, "0 seconds") == [(minute, None) for minute in (5, 12, 15, 22, 35)]


def totals(rows: pa.Table, state: Any) -> pa.Table:
    """Of each row what its key comes to, in the order of rows."""
    sums = {row["carrier"]: row["total"] for row in state["totals"].get().to_pylist()}
    made = []
    for row in rows.select(["carrier", "when", "delay"]).to_pylist():
        sums[row["carrier"]] = sums.get(row["carrier"], 0.0) + row["delay"]
        made.append(row | {"total": sums[row["carrier"]]})
    state["totals"].put(pa.Table.from_pylist([{"carrier": each, "total": total} for each, total in sums.items()]))
    return pa.Table.from_pylist(made).select(["carrier", "when", "total"])


@pytest.mark.parametrize("size", [*long(1, 7), 3])
def test_what_a_function_gives_for_each_row_are_versions_however_epochs_are_cut(
    kohort_test_driver: Driver, size: int
) -> None:
    app = made()
    flights = app.stream("flights", schema=FLIGHT, event_time="when")
    running = flights.group_by("carrier").process(
        "totals", totals, output="carrier STRING, `when` TIMESTAMP, total DOUBLE",
        states={"totals": value_state("total DOUBLE")},
    )  # fmt: skip
    orders = app.stream("orders", schema=CARRIED, event_time="at")
    orders.join_as_of(running.to_table("carrier"), history="1 day", columns=["total"]).to("out")
    driver = kohort_test_driver(app)
    in_cuts(driver, size)
    assert [(row["id"], row["total"]) for row in driver.output("out")] == [
        (12, 30.0), (22, 35.0), (5, 10.0), (35, 42.0), (15, 35.0)
    ]  # fmt: skip


@pytest.mark.long
def test_a_killed_program_goes_on_with_its_versions(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    """Killed while it joins, it goes on with those of the disk; and then without that with those of the changelog.

    A part's orders are sent when the join has got its rates, so each order's rate is known beforehand.
    """
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "rates", "orders", "rates-seen", "out")
    command = [sys.executable, "-W", "ignore", "-m", "tests.pipeline.as_of_program", servers, str(tmp_path / "first")]
    with Child("rated-orders", command, tmp_path / "log") as child:

        def there(count: int) -> bool:
            assert child.code is None, child.tail()
            return len(read(servers, "out")) >= count

        for part in range(2):
            send_rates(servers, part)
            eventually(partial(seen, servers, part), within=120, what="the join has the rates")
            send_orders(servers, part)
            eventually(partial(there, COUNT * part + (1, COUNT)[part == 0]), within=120, what="orders are joined")
    killed_at = len(read(servers, "out"))
    assert killed_at > COUNT

    heard = Heard()
    run_until(rated_app(servers, tmp_path / "first"), spark, heard, lambda: len(read(servers, "out")) >= 2 * COUNT)
    assert not heard.failures

    def script() -> Iterator[bool]:
        send_rates(servers, 2)
        while not seen(servers, 2):
            yield False
        send_orders(servers, 2)
        while len(read(servers, "out")) < 3 * COUNT:
            yield False
        yield True

    going = script()
    run_until(rated_app(servers, tmp_path / "second"), spark, heard, lambda: next(going))
    assert not heard.failures
    found = list(given(servers))
    assert len(found) == 3 * COUNT
    assert dict(found) == batch(3)
    assert len(set(batch(3).values())) > 20


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
        "a group of aggregate 'best' has one row for all that an epoch adds to it.*to_table of a stream with times of "
        r"its own.*or join it as it is now, \.join\(…\)",
    )
    refused(
        lambda app, orders: orders.join_as_of(
            rates(app).join(orders.to_table("currency"), name="both").select("currency", "rate"), **hour
        ),
        "has the time of the change that was read last.*Join the stream with one side as of its time, and then with",
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
