"""The same in Structured Streaming, by transformWithStateInPandas: `python …/structured.py KEYS EPOCHS`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from benchmarks.pipeline.programs.structured import ROCKSDB
from benchmarks.processors.rows import COLUMNS, FIRST, epoch, told


class Totals(StatefulProcessor):
    """Each key's total so far."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state."""
        self._total = handle.getValueState("total", "total BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timers: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        """The rows of a key."""
        before = self._total.get()[0] if self._total.exists() else 0
        total = int(before) + int(sum(each["n"].sum() for each in rows))
        self._total.update((total,))
        yield pd.DataFrame({"key": [key[0]], "total": [total]})

    def close(self) -> None:
        """Nothing is open."""


def main(keys: int, epochs: int) -> None:
    """Measure: a file is an epoch."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", 2)
        .config(map=ROCKSDB)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    found: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as directory:
        rows = Path(directory, "rows")
        rows.mkdir()
        for number in range(FIRST + epochs):
            pq.write_table(epoch(keys, number), rows / f"{number:05}.parquet")
        stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(rows))
        totals = stream.groupBy("key").transformWithStateInPandas(
            statefulProcessor=Totals(), outputStructType="key STRING, total BIGINT", outputMode="Update",
            timeMode="None",
        )  # fmt: skip

        def take(batch: DataFrame, _: int) -> None:
            found.update((row["key"], row["total"]) for row in batch.collect())

        query = (
            totals.writeStream.foreachBatch(take)
            .outputMode("update")
            .option("checkpointLocation", str(Path(directory, "checkpoint")))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        batches = [each for each in query.recentProgress if each["numInputRows"]]
        told([each["durationMs"]["triggerExecution"] / 1000 for each in batches[FIRST:]], found)
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
