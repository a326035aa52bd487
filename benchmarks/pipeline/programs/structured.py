"""Spark Structured Streaming, with Spark's own Kafka connector.

Usage: structured.py OPTIONS, JSON: servers, source, results, directory (for the checkpoint), jars.
"""

from __future__ import annotations

import json
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn


def main(servers: str, source: str, results: str, directory: str, jars: str, **_: object) -> None:
    spark = (
        SparkSession.builder.master("local[*]")
        .appName("structured")
        .config("spark.jars", jars)
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")  # as many as cores
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
    )
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
    hour = fn.date_format("window.start", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").alias("window")
    value = fn.to_json(fn.struct("origin", hour, "n", "mean", "worst", "p90"))
    query = (
        by_hour.select(fn.concat_ws("|", "origin", hour).alias("key"), value.alias("value"))
        .writeStream.format("kafka")
        .outputMode("update")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", results)
        .option("checkpointLocation", f"{directory}/checkpoint")
    )
    print(f"started {time.time()}", flush=True)
    query.start().awaitTermination()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
