"""Applications in the test driver, without a broker: what comes out, what is stored, and what is left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kohort.spark import ApplicationError, DeadLetter, Drop, ProgramError, StreamsApp, avg, count, max_, window
from kohort.spark.testing import TestDriver

NOWHERE = "127.0.0.1:1"
FLIGHT = "carrier STRING, origin STRING, dep_delay DOUBLE, time_hour TIMESTAMP"


def delays(**settings: Any) -> StreamsApp:
    app = StreamsApp("delays-app", bootstrap_servers=NOWHERE, **settings)
    flights = app.stream("flights", schema=FLIGHT, key="carrier", event_time="time_hour")
    airlines = app.table("airlines", schema="carrier STRING, name STRING", key="carrier")
    late = flights.transform(lambda df: df.where("dep_delay is not null")).join(airlines, "carrier")
    by_hour = late.group_by("origin", window("time_hour", "1 hour", grace="1 hour"))
    by_hour.aggregate("delays", n=count(), mean=avg("dep_delay"), worst=max_("dep_delay")).to("delays-by-hour")
    return app


def flight(carrier: str, origin: str, delay: float | None, hour: int) -> dict[str, Any]:
    return {
        "carrier": carrier,
        "origin": origin,
        "dep_delay": delay,
        "time_hour": datetime(2013, 1, 1, hour, tzinfo=UTC),
    }


def test_rows_go_through_a_join_and_a_repartition_into_windows(spark: SparkSession) -> None:
    with TestDriver(delays(), spark) as driver:
        driver.pipe("airlines", [{"carrier": "AA", "name": "American"}, {"carrier": "UA", "name": "United"}])
        driver.pipe(
            "flights", [flight("AA", "JFK", 10.0, 5), flight("UA", "JFK", 20.0, 5), flight("XX", "JFK", 9.0, 5)]
        )

        row = {"window": "2013-01-01T05:00:00.000Z", "origin": "JFK", "n": 2, "mean": 15.0, "worst": 20.0}
        assert driver.output("delays-by-hour") == [row]
        assert driver.output("delays-by-hour") == []
        assert dict(driver.store("delays")) == {
            ("2013-01-01T05:00:00.000Z", "JFK"): {"n": 2, "mean": 15.0, "worst": 20.0}
        }
        assert driver.store("airlines")["AA"] == {"carrier": "AA", "name": "American"}

        driver.delete("airlines", "AA")
        driver.pipe("flights", [flight("AA", "JFK", 90.0, 5), flight("UA", "LGA", 1.0, 8)])
        assert [(each["origin"], each["n"]) for each in driver.output("delays-by-hour")] == [("LGA", 1)]
        assert list(driver.store("airlines")) == ["UA"]
