"""Delays of the flights out of New York: by airport and hour, and by airline and sky.

A streams application. Start it once, or many times on as many machines: the instances share the work, keep copies of
each other's state, and take over from one that dies. Needs Java 17 and a broker with these topics, whose records are
JSON with the columns below:

    flights          keyed by carrier, times in milliseconds; cleanup.policy=delete; each of its partitions is a task
    airlines         keyed by carrier, compacted; as many partitions as flights has
    weather          keyed by {"origin":…,"time_hour":…}, compacted; any number of partitions
    delays-by-hour   what comes out, as delays-by-sky: compacted; any number of partitions

    kohort topics create flights --partitions 4
    kohort topics create airlines weather delays-by-hour delays-by-sky --partitions 4 --set cleanup.policy=compact
    python docs/examples/flight_delays.py localhost:9092 --state-dir /tmp/delays-1

`kohort demo --keep` makes them all, with a year of flights in them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kohort.spark import StreamsApp, approx_percentile, avg, count, max_, sum_, window

FLIGHT = "carrier STRING, origin STRING, dep_delay INT, time_hour TIMESTAMP"
AIRLINE = "carrier STRING, name STRING"
WEATHER = "origin STRING, time_hour TIMESTAMP, temp DOUBLE, wind_speed DOUBLE, precip DOUBLE, visib DOUBLE"

SKY = """CASE WHEN visib IS NULL THEN 'unknown'
              WHEN precip > 0 AND temp <= 34 THEN 'snow'
              WHEN precip > 0 THEN 'rain'
              WHEN visib < 3 THEN 'fog'
              WHEN wind_speed >= 20 THEN 'wind'
              ELSE 'calm' END"""


def flight_delays(servers: str, **options: Any) -> StreamsApp:
    """The application: three topics in, two out."""
    app = StreamsApp("flight-delays", bootstrap_servers=servers, num_standby_replicas=1, **options)
    flights = app.stream(
        "flights", schema=FLIGHT, key="carrier", event_time="time_hour", timestamp_format="timestamp_millis"
    )
    airlines = app.table("airlines", schema=AIRLINE, key="carrier")
    weather = app.global_table("weather", schema=WEATHER, key=("origin", "time_hour"))

    flown = flights.transform(lambda df: df.where("dep_delay IS NOT NULL")).join(airlines, "carrier")

    by_hour = flown.group_by("origin", window("time_hour", "1 hour", grace="1 day", retention="forever"))
    by_hour.aggregate(
        "delays", n=count(), mean=avg("dep_delay"), p90=approx_percentile("dep_delay", 0.9), worst=max_("dep_delay")
    ).to("delays-by-hour")

    by_sky = flown.join(weather, ["origin", "time_hour"], how="left").transform(with_sky).group_by("name", "sky")
    by_sky.aggregate("skies", n=count(), mean=avg("dep_delay"), late=sum_("late")).to("delays-by-sky")
    return app


def with_sky(df: DataFrame) -> DataFrame:
    """What the weather was like, and whether the flight left more than an hour late."""
    return df.selectExpr("name", f"{SKY} AS sky", "dep_delay", "CAST(dep_delay > 60 AS INT) AS late")


def main() -> None:
    """Run an instance until it is stopped (Ctrl+C, SIGTERM)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="?", default="localhost:9092", help="HOST:PORT of a broker")
    parser.add_argument("--state-dir", type=Path, help="where state is kept; an instance's own")
    parser.add_argument("--endpoint", metavar="HOST:PORT", help="where queries are answered; port 0: a free one")
    parser.add_argument("--journal", type=Path, help="write what happens to this file, a JSON object a line")
    parser.add_argument("--master", help="Spark's master: local[2], spark://…; local[*] unless Spark knows better")
    parser.add_argument("--describe", action="store_true", help="print the topology, and end")
    options = parser.parse_args()

    builder = SparkSession.builder.appName("flight-delays")
    spark = (builder.master(options.master) if options.master else builder).getOrCreate()
    app = flight_delays(
        options.servers, state_dir=options.state_dir, application_server=options.endpoint, journal=options.journal
    )
    if options.describe:
        print(app.describe(spark))
    else:
        app.run(spark)


if __name__ == "__main__":
    main()
