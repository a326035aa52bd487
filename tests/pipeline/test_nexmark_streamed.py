"""Nexmark as Structured Streaming is asked it, beside plain Spark over the same events: of files, without a broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from benchmarks.nexmark import batch
from benchmarks.nexmark.contenders import CONTENDERS
from benchmarks.nexmark.events import CLOSING_MS, Shape, closing, closing_ms, whole
from benchmarks.nexmark.programs.structured import asked
from benchmarks.nexmark.results import Gathered
from benchmarks.nexmark.streamed import streamed
from benchmarks.pipeline.programs.structured import ROCKSDB

EVENTS = 3_000
SHAPE = Shape(rate=30)
QUICK = ("q11",)
"""One that needs the closing events."""
(STRUCTURED,) = (contender for contender in CONTENDERS if contender.name == "structured")


@pytest.fixture
def rocksdb(spark: SparkSession) -> Iterator[None]:
    """State as the benchmark has it."""
    for setting, value in ROCKSDB.items():
        spark.conf.set(setting, value)
    yield
    for setting in ROCKSDB:
        spark.conf.unset(setting)


@pytest.mark.usefixtures("rocksdb")
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[] if each in QUICK else [pytest.mark.long]) for each in STRUCTURED.cases]
)
def test_structured_streaming_gives_what_a_batch_gives(spark: SparkSession, tmp_path: Path, name: str) -> None:
    query, events, last = batch.QUERIES[name], whole(EVENTS, SHAPE), closing(EVENTS, SHAPE)
    batch.create_views(spark, events)
    until = (query.begins, closing_ms(EVENTS, SHAPE) - CLOSING_MS // 2) if query.begins else None
    results = Gathered(batch.answer(spark, name), query.keys, query.clock, until)
    streams = {}
    for view in ("person", "auction", "bid"):
        folder = tmp_path / view
        folder.mkdir()
        pq.write_table(getattr(events, f"{view}s"), folder / "0.parquet")
        if query.closing:
            pq.write_table(getattr(last, f"{view}s"), folder / "1.parquet")
        schema = spark.read.parquet(str(folder)).schema
        streams[view] = spark.readStream.schema(schema).parquet(str(folder))

    def take(rows: DataFrame, _: int) -> None:
        if values := [row.value.encode() for row in rows.select("value").collect()]:
            results.take(values)

    writer = asked(spark, name, streams).writeStream.outputMode(streamed(name).mode).foreachBatch(take)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    assert results.differences() == []
