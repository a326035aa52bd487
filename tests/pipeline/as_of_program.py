"""Orders that are joined with rates as of their times, in a process that a test kills: `… SERVERS DIRECTORY`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from kohort.spark import StreamsApp

from .applications import producer, read

START_MS = 1_356_998_400_000
CURRENCIES = ("EUR", "USD", "CHF")
COUNT = 40
"""Of orders, and of rates, in each part."""
Rate = tuple[str, int, float | None]
Order = tuple[int, str, int]


def rated_app(servers: str, state: Path) -> StreamsApp:
    """The program. What it has read of rates is seen in a topic, with the rows that the join gets of them."""
    app = StreamsApp(
        "rated-orders", bootstrap_servers=servers, state_dir=state, max_epoch_records=15,
        session_timeout_ms=10_000, heartbeat_interval_ms=1_000,
    )  # fmt: skip
    rates = app.table("rates", schema="currency STRING, rate DOUBLE", key="currency")
    rates.to("rates-seen")
    orders = app.stream("orders", schema="id BIGINT, currency STRING, at TIMESTAMP", event_time="at")
    orders.join_as_of(rates, how="left", history="30 days", name="rated").to("out", key="id")
    return app


def rates_of(part: int) -> list[Rate]:
    """A part's rates, with their minutes: some come late, some are of a time that has one, some delete."""
    minutes = [60 * part + number * 7 % 41 + (number % 5 == 0) * -50 for number in range(COUNT)]
    return [
        (CURRENCIES[number % 3], minute, None if number % 8 == 3 else part + number / 100)
        for number, minute in enumerate(minutes)
    ]


def orders_of(part: int) -> list[Order]:
    """A part's orders, with their minutes: of all times up to now."""
    return [
        (COUNT * part + number, CURRENCIES[number % 3], (number * 13 + 7) % (60 * part + 60) - 5)
        for number in range(COUNT)
    ]


def batch(parts: int) -> dict[int, float | None]:
    """Each order's rate: the last one of those up to its part that is of its minute or of one before."""
    found: dict[int, float | None] = {}
    known: dict[str, dict[int, float | None]] = {currency: {} for currency in CURRENCIES}
    for part in range(parts):
        for currency, minute, rate in rates_of(part):
            known[currency][minute] = rate
        for number, currency, minute in orders_of(part):
            before = [each for each in known[currency] if each <= minute]
            found[number] = known[currency][max(before)] if before else None
    return found


def send_rates(servers: str, part: int) -> None:
    """Sends a part's rates."""
    sending = producer(servers)
    for currency, minute, rate in rates_of(part):
        value = None if rate is None else json.dumps({"currency": currency, "rate": rate})
        sending.produce("rates", value, key=currency, timestamp=START_MS + minute * 60_000)
    sending.flush()


def send_orders(servers: str, part: int) -> None:
    """Sends a part's orders."""
    sending = producer(servers)
    for number, currency, minute in orders_of(part):
        at = datetime.fromtimestamp(START_MS / 1000 + minute * 60, UTC).isoformat()
        sending.produce("orders", json.dumps({"id": number, "currency": currency, "at": at}), key=str(number))
    sending.flush()


def seen(servers: str, part: int) -> bool:
    """Whether the join has got all rates up to this part."""
    return len(read(servers, "rates-seen")) >= COUNT * (part + 1)


def given(servers: str) -> Iterator[tuple[int, float | None]]:
    """What the program has given, orders with their rates."""
    for each in read(servers, "out"):
        row = json.loads(each.value() or b"")
        yield row["id"], row.get("rate")


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    rated_app(sys.argv[1], Path(sys.argv[2])).run(session, progress=False)
