"""The application that is put under fire: delays of flights by airport and hour, with the airline's name joined."""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from kohort.spark import StreamsApp, approx_percentile, avg, count, max_, sum_, window
from kohort.spark.monitoring.journal_writer import JournalWriter

from .flights import GRACE_MS

FLIGHT = "carrier STRING, origin STRING, dep_delay INT, departed TIMESTAMP"
AIRLINE = "carrier STRING, name STRING"


def application(servers: str, application_id: str, **settings: object) -> StreamsApp:
    """The program: two subtopologies, with a table's store in one and an aggregate's in the other."""
    app = StreamsApp(application_id, bootstrap_servers=servers, **settings)  # type: ignore[arg-type]
    flights = app.stream(
        "flights", schema=FLIGHT, key="carrier", event_time="departed", timestamp_format="timestamp_millis"
    )
    airlines = app.table("airlines", schema=AIRLINE, key="carrier")
    flown = flights.transform(lambda rows: rows.where(f.col("dep_delay").isNotNull())).join(airlines, "carrier")
    by_hour = flown.group_by("origin", window("departed", "1 hour", grace=timedelta(milliseconds=GRACE_MS)))
    by_hour.aggregate(
        "delays",
        n=count(),
        total=sum_("dep_delay"),
        mean=avg("dep_delay"),
        p90=approx_percentile("dep_delay", 0.9),
        worst=max_("dep_delay"),
    ).to("delays-by-hour")
    return app


def session(master: str) -> SparkSession:
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
    parser.add_argument("--application-id", default="delays")
    parser.add_argument("--directory", type=Path, required=True, help="for its state and its journal")
    parser.add_argument("--standbys", type=int, default=1)
    parser.add_argument("--group-protocol", choices=("streams", "classic", "auto"), default="streams")
    parser.add_argument("--session-timeout-ms", type=int, help="by default the group's")
    parser.add_argument("--master", default="local[1]")
    options = parser.parse_args()
    app = application(
        options.servers, options.application_id, state_dir=options.directory / "state",
        num_standby_replicas=options.standbys, group_protocol=options.group_protocol,
        session_timeout_ms=options.session_timeout_ms,
    )  # fmt: skip
    with JournalWriter(options.directory / "journal.jsonl", options.directory.name) as journal:
        app.run(session(options.master), listeners=[journal], progress=False)


if __name__ == "__main__":
    sys.exit(main())
