"""Spark Structured Streaming, with Spark's own Kafka connector.

Usage: structured.py OPTIONS, JSON: servers, source, results, directory (for the checkpoint), case, jars, and real_time:
how long a batch of its real-time mode is, from one checkpoint to the next, as Spark's triggers take it; without, it
takes one batch after the other.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming import DataStreamWriter

WINDOW_START = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"


def start() -> Column:
    """The window's start as text."""
    return fn.date_format("window.start", WINDOW_START)


def delays(records: DataFrame) -> DataFrame:
    """Flights by origin and hour, as records."""
    schema = "origin string, dep_delay bigint, time_hour timestamp"
    flights = records.select(fn.from_json(fn.col("value").cast("string"), schema).alias("flight")).select("flight.*")
    by_hour = (
        flights.where("dep_delay is not null")
        .groupBy("origin", fn.window("time_hour", "1 hour"))
        .agg(
            fn.count("*").alias("n"),
            fn.avg("dep_delay").alias("mean"),
            fn.max("dep_delay").alias("worst"),
            fn.percentile_approx("dep_delay", 0.9).alias("p90"),
        )
    )
    value = fn.to_json(fn.struct("origin", start().alias("window"), "n", "mean", "worst", "p90"))
    return by_hour.select(fn.concat_ws("|", "origin", start()).alias("key"), value.alias("value"))


def auctions(records: DataFrame) -> DataFrame:
    """Bids by auction and day, as records."""
    schema = "auction bigint, price bigint, dateTime bigint"
    bids = records.select(fn.from_json(fn.col("value").cast("string"), schema).alias("bid")).select("bid.*")
    price = fn.col("price")
    by_day = bids.groupBy("auction", fn.window(fn.timestamp_millis("dateTime"), "1 day")).agg(
        fn.count("*").alias("bids"),
        fn.count_if(price < 10_000).alias("cheap"),
        fn.count_if((price >= 10_000) & (price < 1_000_000)).alias("middling"),
        fn.count_if(price >= 1_000_000).alias("dear"),
        fn.min(price).alias("lowest"),
        fn.max(price).alias("highest"),
        fn.avg(price).alias("mean"),
        fn.sum(price).alias("total"),
    )
    names = ("bids", "cheap", "middling", "dear", "lowest", "highest", "mean", "total")
    value = fn.to_json(fn.struct("auction", start().alias("window"), *names))
    return by_day.select(fn.concat_ws("|", "auction", start()).alias("key"), value.alias("value"))


QUERIES = {"flights": delays, "auctions": auctions}
ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
"""The default keeps all state in the heap."""
SETTINGS: dict[str, dict[str, str]] = {"flights": {}, "auctions": ROCKSDB}


REAL_TIME_THREADS = 8
"""In its real-time mode all tasks run at once and don't end: four read, two are behind the shuffle."""


def session(jars: str, settings: Mapping[str, str], master: str = "local[*]") -> SparkSession:
    """Spark on this machine, with these packages and settings more."""
    spark = (
        SparkSession.builder.master(master)
        .appName("structured")
        .config("spark.jars", jars)
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")  # as many as cores
        .config(map=dict(settings))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def read(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    """A topic's records, from its beginning on."""
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )


def written(records: DataFrame, mode: str, servers: str, topic: str, directory: str) -> DataStreamWriter:
    """Records as they go to a topic; the checkpoint is in the directory."""
    return (
        records.writeStream.format("kafka")
        .outputMode(mode)
        .option("kafka.bootstrap.servers", servers)
        .option("topic", topic)
        .option("checkpointLocation", f"{directory}/checkpoint")
    )


def answer(query: DataStreamWriter) -> None:
    """Runs a query until it is stopped."""
    print(f"started {time.time()}", flush=True)
    query.start().awaitTermination()


def main(
    servers: str,
    source: str,
    results: str,
    directory: str,
    case: str,
    jars: str,
    real_time: str | None = None,
    **_: object,
) -> None:
    spark = session(jars, SETTINGS[case], f"local[{REAL_TIME_THREADS if real_time else '*'}]")
    query = written(QUERIES[case](read(spark, servers, source)), "update", servers, results, directory)
    answer(query.trigger(realTime=real_time) if real_time else query)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
