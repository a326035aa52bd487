"""A batch: what queries give in the end, in Parquet files.

Usage: python -m benchmarks.nexmark.programs.oracle DIRECTORY EVENTS QUERY…
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.nexmark.batch import QUERIES
from benchmarks.nexmark.events import generate
from benchmarks.nexmark.topics import side_input


def main(directory: Path, events: int, names: list[str]) -> None:
    spark = (
        SparkSession.builder.master("local[*]")
        .appName("oracle")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    source = directory / "events"
    for number, part in enumerate(generate(events)):
        for name, table in (("person", part.persons), ("auction", part.auctions), ("bid", part.bids)):
            (source / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(table, source / name / f"{number}.parquet")
    (source / "side_input").mkdir()
    pq.write_table(side_input(), source / "side_input" / "0.parquet")
    for view in source.iterdir():
        spark.read.parquet(str(view)).createOrReplaceTempView(view.name)
    for name in names:
        spark.sql(QUERIES[name].sql).write.parquet(str(directory / name))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
