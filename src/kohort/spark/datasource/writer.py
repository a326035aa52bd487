"""Writes rows to topics, each task with an idempotent producer of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from kohort.client.errors import NotDeliveredError
from kohort.client.producer import Producer
from kohort.client.time_limit import time_limit
from kohort.spark.datasource.options import WriteOptions
from kohort.spark.reading.loop_thread import LoopThread

__all__ = ["TopicWriter"]

_PATIENCE_S: Final = 10.0
"""How long brokers may take to know a topic; kafka.max.block.ms says otherwise."""

_TYPES = {
    "key": (spark.BinaryType, spark.StringType),
    "value": (spark.BinaryType, spark.StringType),
    "topic": (spark.StringType,),
    "partition": (spark.IntegerType,),
    "timestamp": (spark.TimestampType,),
    "headers": (spark.ArrayType,),
}


@dataclass
class Written(WriterCommitMessage):
    """What a task wrote."""

    records: int


class TopicWriter(DataSourceArrowWriter):
    """Adds rows to topics. A row is written once, or more often if Spark runs its task again.

    Args:
        options: where to.
        schema: any of the columns key, value (strings or bytes), topic, partition, timestamp and headers.

    Raises:
        ValueError: other columns or types, no column "value", no topic.
    """

    def __init__(self, options: WriteOptions, schema: spark.StructType) -> None:
        for field in schema.fields:
            if field.name not in _TYPES:
                raise ValueError(
                    f"column {field.name} can't be written: there are {', '.join(_TYPES)}; "
                    "others may go into the value, as by to_json(struct(…))"
                )
            if not isinstance(field.dataType, _TYPES[field.name]):
                kinds = " or ".join(each.typeName() for each in _TYPES[field.name])
                raise ValueError(f"column {field.name} is {field.dataType.simpleString()}, and should be {kinds}")
        if "value" not in schema.names:
            raise ValueError("there's no column value to write")
        if options.topic is None and "topic" not in schema.names:
            raise ValueError('say where to: option("topic", "…"), or a column topic')
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write a task's rows; they are on the brokers when it returns.

        Raises:
            ValueError: a topic that there isn't, or a row that can't be written.
            NotDeliveredError: brokers don't take the rows.
        """
        thread = LoopThread("kohort-writer")
        producer: Producer | None = None
        found: set[str] = set()
        records = 0
        try:
            producer = thread.run(self._producer())
            for batch in iterator:
                for topic, rows in self._by_topic(batch):
                    if topic not in found:
                        thread.run(self._find(producer, topic))
                        found.add(topic)
                    thread.run(_sent(producer, topic, rows))
                    records += rows.num_rows
            thread.run(producer.flush())
            return Written(records)
        finally:
            if producer is not None:
                with contextlib.suppress(NotDeliveredError):  # what happened first is what counts
                    thread.run(_closed(producer))
            thread.close()

    async def _producer(self) -> Producer:
        producer = Producer(self._options.config, **self._options.producer)
        await producer.start()
        return producer

    async def _find(self, producer: Producer, topic: str) -> None:
        """Have the producer find a topic. A wrong name is told sooner than by itself, as it waits for brokers, too."""
        nothing = pa.table({"value": pa.array([], pa.binary())})
        try:
            async with time_limit(None if "max_block_ms" in self._options.producer else _PATIENCE_S) as limit:
                await producer.send_table(topic, nothing)
        except TimeoutError:
            if not limit.expired():
                raise
            raise ValueError(
                f"topic {topic!r} isn't there after {_PATIENCE_S:g} s, and brokers don't make it"
            ) from None

    def _by_topic(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        topics = batch.column("topic") if "topic" in batch.schema.names else None
        rows = batch if topics is None else batch.drop_columns(["topic"])
        if self._options.topic is not None:
            yield self._options.topic, rows
            return
        assert topics is not None
        if topics.null_count:
            raise ValueError('a row has null in the column topic, and there\'s no option("topic", "…")')
        for topic in topics.unique():
            yield topic.as_py(), rows.filter(pc.equal(topics, topic))


async def _sent(producer: Producer, topic: str, rows: pa.RecordBatch) -> None:
    await producer.send_table(topic, rows)


async def _closed(producer: Producer) -> None:
    await producer.close()
