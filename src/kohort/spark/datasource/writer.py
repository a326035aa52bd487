"""Writes rows to topics; each Spark task has an idempotent producer."""

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
from kohort.client.loop_thread import LoopThread
from kohort.client.producer import Producer
from kohort.client.time_limit import time_limit
from kohort.spark.datasource.options import WriteOptions

_TOPIC_TIMEOUT_S: Final = 10.0
"""How long brokers may take to create a topic, unless kafka.max.block.ms is set."""

_COLUMN_TYPES = {
    "key": (spark.BinaryType, spark.StringType),
    "value": (spark.BinaryType, spark.StringType),
    "topic": (spark.StringType,),
    "partition": (spark.IntegerType,),
    "timestamp": (spark.TimestampType,),
    "headers": (spark.ArrayType,),
}


@dataclass
class WriteResult(WriterCommitMessage):
    records: int


class TopicWriter(DataSourceArrowWriter):
    """Appends rows to topics. If Spark runs a task again, its rows are written again.

    Args:
        schema: any of the columns key, value (strings or bytes), topic, partition, timestamp and headers.

    Raises:
        ValueError: another column or type, no column "value", or no topic.
    """

    def __init__(self, options: WriteOptions, schema: spark.StructType) -> None:
        for field in schema.fields:
            if field.name not in _COLUMN_TYPES:
                raise ValueError(
                    f"column {field.name} can't be written: there are {', '.join(_COLUMN_TYPES)}; "
                    "others may go into the value, as by to_json(struct(…))"
                )
            if not isinstance(field.dataType, _COLUMN_TYPES[field.name]):
                kinds = " or ".join(each.typeName() for each in _COLUMN_TYPES[field.name])
                raise ValueError(f"column {field.name} is {field.dataType.simpleString()}, and should be {kinds}")
        if "value" not in schema.names:
            raise ValueError("there's no column value to write")
        if options.topic is None and "topic" not in schema.names:
            raise ValueError('say where to: option("topic", "…"), or a column topic')
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriteResult:
        """Writes a task's rows; brokers have acknowledged them when it returns.

        Raises:
            ValueError: a topic doesn't exist, or a row can't be written.
            NotDeliveredError: brokers refuse rows.
        """
        thread = LoopThread("kohort-writer")
        producer: Producer | None = None
        found_topics: set[str] = set()
        records = 0
        try:
            producer = thread.run(self._producer())
            for batch in iterator:
                for topic, rows in self._by_topic(batch):
                    if topic not in found_topics:
                        thread.run(self._find_topic(producer, topic))
                        found_topics.add(topic)
                    thread.run(_send(producer, topic, rows))
                    records += rows.num_rows
            thread.run(producer.flush())
            return WriteResult(records)
        finally:
            if producer is not None:
                with contextlib.suppress(NotDeliveredError):  # an earlier error matters more
                    thread.run(_close(producer))
            thread.close()

    async def _producer(self) -> Producer:
        producer = Producer(self._options.config, **self._options.producer)
        await producer.start()
        return producer

    async def _find_topic(self, producer: Producer, topic: str) -> None:
        """Waits for a topic to exist, for less time than the producer would, so that a wrong name is noticed soon."""
        nothing = pa.table({"value": pa.array([], pa.binary())})
        try:
            async with time_limit(None if "max_block_ms" in self._options.producer else _TOPIC_TIMEOUT_S) as limit:
                await producer.send_table(topic, nothing)
        except TimeoutError:
            if not limit.expired():
                raise
            raise ValueError(
                f"topic {topic!r} isn't there after {_TOPIC_TIMEOUT_S:g} s, and brokers don't make it"
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


async def _send(producer: Producer, topic: str, rows: pa.RecordBatch) -> None:
    await producer.send_table(topic, rows)


async def _close(producer: Producer) -> None:
    await producer.close()
