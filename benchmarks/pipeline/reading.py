"""The read path alone: all of a topic through a Spark data source; what it took is printed as JSON.

Usage: python -m benchmarks.pipeline.reading FORMAT (kohort, kafka) SERVERS TOPIC ROUNDS [JARS]
"""

from __future__ import annotations

import json
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn


def main(source: str, servers: str, topic: str, rounds: str, jars: str = "") -> None:
    spark = (
        SparkSession.builder.master("local[*]")
        .appName("reading")
        .config("spark.jars", jars)
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    taken = []
    for _ in range(int(rounds) + 1):
        began = time.perf_counter()
        records = spark.read.format(source).option("kafka.bootstrap.servers", servers).option("subscribe", topic).load()
        found = records.agg(
            fn.count("*").alias("n"), fn.sum(fn.length("value")).alias("bytes"), fn.max("offset")
        ).collect()
        taken.append(time.perf_counter() - began)
    print(json.dumps({"records": found[0].n, "bytes": found[0].bytes, "first": taken[0], "seconds": taken[1:]}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
