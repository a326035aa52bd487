"""The applications that are put under fire."""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from kohort.spark import StreamsApp, approx_percentile, avg, count, max_, session, sum_, window
from kohort.spark.monitoring.journal_writer import JournalWriter

from . import flights as of_flights
from .jobs import MAX_DELIVERIES, OUTCOME
from .orders import CALLED_MS, GAP_MS, GRACE_MS, PAYABLE_MS, REMINDED_MS, SHELF_GAP_MS, SHELVES

FLIGHT = "carrier STRING, origin STRING, dep_delay INT, departed TIMESTAMP"
AIRLINE = "carrier STRING, name STRING"
ORDER = "id STRING, customer STRING, amount INT, at TIMESTAMP"
PAYMENT = "`order` STRING, paid INT, paid_at TIMESTAMP"
JOB = "id STRING, kind STRING"


def delays(app: StreamsApp, instance: str) -> None:
    """Delays of flights by airport and hour, with the airline's name joined.

    Two subtopologies, with a table's store in one and an aggregate's in the other.
    """
    flights = app.stream(
        "flights", schema=FLIGHT, key="carrier", event_time="departed", timestamp_format="timestamp_millis"
    )
    airlines = app.table("airlines", schema=AIRLINE, key="carrier")
    flown = flights.transform(lambda rows: rows.where(f.col("dep_delay").isNotNull())).join(airlines, "carrier")
    grace = timedelta(milliseconds=of_flights.GRACE_MS)
    by_hour = flown.group_by("origin", window("departed", "1 hour", grace=grace))
    by_hour.aggregate(
        "delays",
        n=count(),
        total=sum_("dep_delay"),
        mean=avg("dep_delay"),
        p90=approx_percentile("dep_delay", 0.9),
        worst=max_("dep_delay"),
    ).to("delays-by-hour")


def orders(app: StreamsApp, instance: str) -> None:
    """Orders with their payments, each once more in an hour and in seconds, and sessions of customers and of shelves.

    The hour is of event time, the seconds are of the clock. The stores of the join, and of the shelves' sessions, are
    in subtopologies behind repartition topics. Those of the timers, and of the customers' sessions, are in the
    subtopology that reads orders. Bills and receipts, which are the same records by another key, are joined where they
    lie.
    """
    grace = timedelta(milliseconds=GRACE_MS)
    placed = app.stream("orders", schema=ORDER, key="customer", event_time="at", timestamp_format="timestamp_millis")
    paid = app.stream(
        "payments", schema=PAYMENT, key="order", event_time="paid_at", timestamp_format="timestamp_millis"
    )
    both = placed.join_stream(
        paid, on={"id": "order"}, after=timedelta(milliseconds=PAYABLE_MS), grace=grace, how="outer"
    )
    both.to("paid-orders", key="id")
    billed = app.stream("bills", schema=ORDER, key="id", event_time="at", timestamp_format="timestamp_millis")
    receipts = app.stream(
        "receipts", schema=PAYMENT, key="order", event_time="paid_at", timestamp_format="timestamp_millis"
    )
    in_place = billed.join_stream(
        receipts,
        on={"id": "order"},
        after=timedelta(milliseconds=PAYABLE_MS),
        grace=grace,
        how="outer",
        repartition=False,
    )
    in_place.to("paid-bills", key="id")
    later = placed.group_by("customer").process(
        "an-hour-later", reminded, output="customer STRING, id STRING", timers=True
    )
    later.to("reminders", key="customer")
    soon = placed.group_by("customer").process(
        "seconds-later", called, output="customer STRING, id STRING", timers="processing"
    )
    soon.to("calls", key="customer")
    visits = placed.group_by("customer", session("at", timedelta(milliseconds=GAP_MS), grace=grace))
    visits.aggregate("visits", emit="close", n=count(), spent=sum_("amount")).to("closed-visits")
    shelved = placed.transform(lambda rows: rows.withColumn("shelf", f.col("amount") % SHELVES))
    rushes = shelved.group_by("shelf", session("at", timedelta(milliseconds=SHELF_GAP_MS), grace=grace))
    rushes.aggregate("rushes", n=count(), spent=sum_("amount")).to("rushes")


def reminded(rows: pa.Table, state: Any) -> pa.Table:
    """The orders of an hour ago."""
    after = pa.scalar(REMINDED_MS * 1_000, pa.duration("us"))
    at = pc.add(rows["at"], after)
    state.timers.set(pa.table({"customer": rows["customer"], "at": at, "name": rows["id"]}))
    return state.timers.due.select(["customer", "name"]).rename_columns(["customer", "id"])


def called(rows: pa.Table, state: Any) -> pa.Table:
    """The orders that were read some seconds ago, by the clock."""
    at = pa.repeat(pa.scalar(state.now + CALLED_MS, pa.timestamp("ms", "UTC")), rows.num_rows)
    state.clock_timers.set(pa.table({"customer": rows["customer"], "at": at, "name": rows["id"]}))
    return state.clock_timers.due.select(["customer", "name"]).rename_columns(["customer", "id"])


def jobs(app: StreamsApp, instance: str) -> None:
    """Jobs of a work queue: done, tried again or rejected as each says. Results say which worker did it."""
    done = app.queue("jobs", schema=JOB, dead_letters="jobs-dead", max_deliveries=MAX_DELIVERIES, max_records=100)
    said = done.with_columns(
        worker=f"'{instance}'", delivery="_delivery_count", place="_partition", at="_offset", outcome=OUTCOME
    )
    said.process(outcome="outcome").to("jobs-done", key="id")


PROGRAMS = {"flights": delays, "orders": orders, "jobs": jobs}


def spark_session(master: str) -> SparkSession:
    """A small one."""
    made = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.executor.memory", "512m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    return made


def main() -> None:
    """Run an instance until it's stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("servers")
    parser.add_argument("--program", choices=PROGRAMS, default="flights")
    parser.add_argument("--application-id", default="delays")
    parser.add_argument("--directory", type=Path, required=True, help="for its state and its journal")
    parser.add_argument("--standbys", type=int, default=1)
    parser.add_argument("--group-protocol", choices=("streams", "classic", "auto"), default="streams")
    parser.add_argument("--session-timeout-ms", type=int, help="by default the group's")
    parser.add_argument("--master", default="local[1]")
    options = parser.parse_args()
    app = StreamsApp(
        options.application_id, bootstrap_servers=options.servers, state_dir=options.directory / "state",
        num_standby_replicas=options.standbys, group_protocol=options.group_protocol,
        session_timeout_ms=options.session_timeout_ms,
    )  # fmt: skip
    PROGRAMS[options.program](app, options.directory.name)
    with JournalWriter(options.directory / "journal.jsonl", options.directory.name) as journal:
        app.run(spark_session(options.master), listeners=[journal], progress=False)


if __name__ == "__main__":
    sys.exit(main())
