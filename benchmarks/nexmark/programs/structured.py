"""A query by Spark Structured Streaming, with Spark's own Kafka connector: SQL over views that are streams.

Usage: python -m benchmarks.nexmark.programs.structured OPTIONS, JSON: servers, source (the prefix of topics), results,
directory (for the checkpoint), case (the query), jars.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from benchmarks.nexmark.batch import QUERIES
from benchmarks.nexmark.programs import sales
from benchmarks.nexmark.streamed import streamed
from benchmarks.nexmark.topics import AUCTION, BID, PERSON, Topic, side_input
from benchmarks.pipeline.programs.structured import ROCKSDB, answer, read, session, written

TIMES = ("dateTime", "expires")


def main(servers: str, source: str, results: str, directory: str, case: str, jars: str, **_: object) -> None:
    spark = session(jars, ROCKSDB)
    rows = {topic.name: view(spark, servers, source, topic) for topic in (PERSON, AUCTION, BID)}
    answer(written(asked(spark, case, rows), streamed(case).mode, servers, results, directory))


def asked(spark: SparkSession, case: str, rows: Mapping[str, DataFrame]) -> DataFrame:
    """A query's results as records, over these streams by the views' names."""
    query, said = QUERIES[case], streamed(case)
    for name, stream in rows.items():
        late = stream.withWatermark("dateTime", said.watermark) if said.watermark else stream
        late.createOrReplaceTempView(name)
    spark.createDataFrame(side_input()).createOrReplaceTempView("side_input")
    found = spark.sql(said.sql)
    if said.then:
        found = getattr(sales, said.then)(found)
    return found.select(
        fn.to_json(fn.struct(*query.keys)).alias("key") if query.keys else fn.lit(None).cast("string").alias("key"),
        fn.to_json(fn.struct("*")).alias("value"),
    )


def view(spark: SparkSession, servers: str, prefix: str, topic: Topic) -> DataFrame:
    """A topic's rows, with records' offsets as numbers: order within a key is all that queries ask of them."""
    records = read(spark, servers, f"{prefix}-{topic.name}")
    schema = topic.schema.replace("TIMESTAMP", "BIGINT")
    row = fn.from_json(fn.col("value").cast("string"), schema).alias("row")
    rows = records.select(row, fn.col("offset").alias("number")).select("row.*", "number")
    return rows.withColumns({name: fn.timestamp_millis(name) for name in TIMES if name in rows.columns})


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
