"""Kohort's pipeline.

Usage: kohort.py OPTIONS, JSON: servers, application, source, results, directory, standbys, case. There is a journal in
the directory.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kohort.spark import StreamsApp, approx_percentile, avg, count, max_, min_, sum_, window
from kohort.spark.monitoring.events import EpochDone, Listener, TasksNow

Program = Callable[[StreamsApp, str, str], None]
"""(an application, the topic that it reads, the topic that it writes)."""
FLIGHT = "origin STRING, dep_delay BIGINT, time_hour TIMESTAMP"
BID = "auction BIGINT, price BIGINT, dateTime TIMESTAMP"


def phase(name: str) -> None:
    """Tells that this part of the start is over."""
    print(f"phase {time.time()} {name}", flush=True)


class Teller(Listener):
    """Tells when the first tasks run, and what comes before."""

    def __init__(self) -> None:
        self._told = self._warming_up = False

    def tasks(self, now: TasksNow) -> None:
        """The tasks have changed."""
        if now.active and not now.restoring:
            self._tell(now.at)

    def epoch(self, done: EpochDone) -> None:
        """An epoch is committed."""
        self._tell(done.at - done.took_ms / 1000)

    def waiting(self, reason: str | None) -> None:
        """Why nothing goes on."""
        if reason == "Spark is warming up" and not self._warming_up:
            phase("the program is compiled, and checked against the cluster")
        if self._warming_up and reason != "Spark is warming up":
            phase("Spark is warm")
        self._warming_up = reason == "Spark is warming up"
        print(f"{time.time():.3f} waiting: {reason}", file=sys.stderr)

    def failed(self, text: str) -> None:
        """Something went wrong."""
        print(f"{time.time():.3f} failed: {text}", file=sys.stderr)

    def _tell(self, at: float) -> None:
        if not self._told:
            self._told = True
            phase("the group has given tasks, and they run")
            print(f"started {at}", flush=True)


def delays(app: StreamsApp, source: str, results: str) -> None:
    """Flights by origin and hour."""
    flights = app.stream(source, schema=FLIGHT, event_time="time_hour")
    by_hour = flights.transform(lambda df: df.where("dep_delay IS NOT NULL")).group_by(
        "origin", window("time_hour", "1 hour")
    )
    by_hour.aggregate(
        "delays", n=count(), mean=avg("dep_delay"), worst=max_("dep_delay"), p90=approx_percentile("dep_delay", 0.9)
    ).to(results)


def auctions(app: StreamsApp, source: str, results: str) -> None:
    """Bids by auction and day."""

    def ranges(bids: DataFrame) -> DataFrame:
        return bids.selectExpr(
            "*",
            "CAST(price < 10000 AS BIGINT) AS cheap",
            "CAST(price >= 10000 AND price < 1000000 AS BIGINT) AS middling",
            "CAST(price >= 1000000 AS BIGINT) AS dear",
        )

    bids = app.stream(
        source, schema=BID, key="auction", event_time="dateTime", timestamp_format={"dateTime": "timestamp_millis"}
    )
    bids.transform(ranges).group_by("auction", window("dateTime", "1 day")).aggregate(
        "auctions",
        bids=count(),
        cheap=sum_("cheap"),
        middling=sum_("middling"),
        dear=sum_("dear"),
        lowest=min_("price"),
        highest=max_("price"),
        mean=avg("price"),
        total=sum_("price"),
    ).to(results)


PROGRAMS = {"flights": delays, "auctions": auctions}
MEMORY = {"flights": "2g", "auctions": "768m"}
"""Of the JVM's heap. Spark keeps no state of many groups there."""


def run(
    program: Program,
    memory: str,
    *,
    servers: str,
    application: str,
    source: str,
    results: str,
    directory: str,
    standbys: int,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Runs an instance of a program until it is stopped.

    Args:
        memory: of the JVM's heap.
        settings: more of Spark's.
    """
    phase("Python has its imports")
    spark = (
        SparkSession.builder.master("local[*]")
        .appName(application)
        .config("spark.driver.memory", memory)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config(map=dict(settings))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    phase("there is a Spark session")
    app = StreamsApp(
        application,
        bootstrap_servers=servers,
        num_standby_replicas=standbys,
        state_dir=directory,
        journal=Path(directory, f"{Path(directory).name}.jsonl"),
    )
    program(app, source, results)
    app.run(spark, listeners=[Teller()], progress=False)


def main(case: str, **job: Any) -> None:
    run(PROGRAMS[case], MEMORY[case], **job)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
