"""Kohort's queue, or its stream over the same rows.

    python -m benchmarks.queues.programs.kohort SERVERS NAME queue|stream MAX_RECORDS hash|wait

It reads the topic NAME-rows and writes NAME-done, until SIGTERM.
"""

from __future__ import annotations

import os
import sys
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType

from benchmarks.queues.rows import SCHEMA
from kohort.spark import StreamsApp

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "768m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def waited(text: str, ms: int) -> str:
    """Waits as for an answer from elsewhere."""
    time.sleep(ms / 1000)
    return text


def hashed(rows: DataFrame) -> DataFrame:
    """Hashes texts, in Spark alone."""
    return rows.select("id", "sent", F.sha2("text", 256).alias("hash"), F.lit(os.getpid()).alias("worker"))


def hashed_after_a_wait(rows: DataFrame) -> DataFrame:
    """Hashes texts, each of which waits."""
    return hashed(rows.withColumn("text", F.udf(waited, StringType())("text", "ms")))


def main(servers: str, name: str, kind: str, max_records: str, work: str) -> None:
    """Works on rows."""
    builder = SparkSession.builder.master("local[1]")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    done = hashed if work == "hash" else hashed_after_a_wait
    app = StreamsApp(name, bootstrap_servers=servers)
    if kind == "queue":
        queue = app.queue(f"{name}-rows", schema=SCHEMA, max_records=int(max_records))
        queue.process(done).to(f"{name}-done", key="id")
    else:
        app.stream(f"{name}-rows", schema=SCHEMA).transform(done).to(f"{name}-done", key="id")
    app.run(spark)


if __name__ == "__main__":
    main(*sys.argv[1:])
