"""Topics as streams of Spark: `spark.readStream.format("kohort")`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
import pyarrow as pa
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient, OffsetSpec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kohort.client import Producer
from kohort.client.admin import Admin
from kohort.client.types import TopicPartition
from kohort.testing.broker import Broker

T0 = TopicPartition("t", 0)


class Topic:
    """A topic of two partitions, and a checkpoint of queries of it."""

    def __init__(self, spark: SparkSession, broker: Broker, checkpoint: Path) -> None:
        self.spark, self.broker, self.checkpoint = spark, broker, checkpoint
        self.written: list[bytes] = []
        self.administer(lambda admin: admin.topics.create("t", partitions=2))

    def administer(self, work: Callable[[Admin], Any]) -> Any:
        async def whole() -> Any:
            async with Admin(self.broker.bootstrap_servers) as admin:
                return await work(admin)

        return asyncio.run(whole())

    def write(self, count: int) -> None:
        """Writes records, half of them to each partition."""
        values = [b"%d" % n for n in range(len(self.written), len(self.written) + count)]

        async def whole() -> None:
            async with Producer(self.broker.bootstrap_servers) as producer:
                await producer.send_table("t", pa.table({"value": values[::2]}), partition=0)
                await producer.send_table("t", pa.table({"value": values[1::2]}), partition=1)

        asyncio.run(whole())
        self.written += values

    def start(self, sink: Callable[[DataFrame, int], None], now: bool = True, **options: str) -> StreamingQuery:
        """A query, of what is there `now` or of all to come."""
        options = {"servers": self.broker.bootstrap_servers, "topic": "t", "startingOffsets": "earliest", **options}
        writer = self.spark.readStream.format("kohort").options(**options).load().writeStream.foreachBatch(sink)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        return (writer.trigger(availableNow=True) if now else writer).start()

    def committed(self) -> dict[TopicPartition, int]:
        found = self.administer(lambda admin: admin.group_offsets.committed("g"))
        return {at: each.offset for at, each in found.items()}

    def lag(self) -> dict[int, int]:
        """By partition, as librdkafka's administrator sees it: the topic's end, and what the group has committed."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers, "enable.metrics.push": False})
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("g")])
        committed = {(each.topic, each.partition): each.offset for each in asked["g"].result(10).topic_partitions}
        latest = {confluent_kafka.TopicPartition(topic, n): OffsetSpec.latest() for topic, n in committed}
        ends = {at.partition: future.result(10).offset for at, future in admin.list_offsets(latest).items()}
        return {n: ends[n] - offset for (_, n), offset in committed.items()}


class Sink:
    """A table that takes each micro-batch once, by its id; fails once after it has taken `failing`."""

    def __init__(self, failing: int | None = None) -> None:
        self.batches: dict[int, list[bytes]] = {}
        self.repeated: list[int] = []
        self._failing = failing

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        rows = sorted((row.value for row in frame.collect()), key=int)
        if batch_id in self.batches:
            self.repeated.append(batch_id)
            assert self.batches[batch_id] == rows
            return
        self.batches[batch_id] = rows
        if batch_id == self._failing:
            raise RuntimeError("killed between sink and commit")

    @property
    def rows(self) -> list[bytes]:
        return [row for batch in self.batches.values() for row in batch]


@pytest.fixture
def topic(spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path) -> Topic:
    return Topic(spark, kohort_fresh_broker, tmp_path / "checkpoint")


def test_what_is_there_is_read_in_micro_batches_and_shown_as_a_groups_progress(topic: Topic) -> None:
    topic.write(50)
    sink = Sink()
    topic.start(sink, maxOffsetsPerTrigger="20", groupId="g").awaitTermination()
    assert [len(batch) for batch in sink.batches.values()] == [20, 20, 10]
    assert sorted(sink.rows, key=int) == topic.written
    assert topic.committed() == {T0: 25, TopicPartition("t", 1): 25}
    topic.write(4)
    assert topic.lag() == {0: 2, 1: 2}
    query = topic.start(sink, maxOffsetsPerTrigger="20", groupId="g")
    query.awaitTermination()
    assert sink.batches[3] == topic.written[50:]
    assert query.lastProgress is not None
    assert topic.committed() == {T0: 27, TopicPartition("t", 1): 27}
    assert topic.lag() == {0: 0, 1: 0}


def test_a_micro_batch_that_failed_after_its_sink_is_the_same_again(topic: Topic) -> None:
    topic.write(30)
    sink = Sink(failing=1)
    with pytest.raises(Exception, match="killed between sink and commit"):
        topic.start(sink, maxOffsetsPerTrigger="10", groupId="g").awaitTermination()
    topic.write(30)
    topic.start(sink, maxOffsetsPerTrigger="10", groupId="g").awaitTermination()
    assert sink.repeated == [1]
    assert sorted(sink.rows, key=int) == topic.written
    assert topic.committed() == {T0: 30, TopicPartition("t", 1): 30}


@pytest.mark.long
def test_records_that_retention_deleted_are_an_error_unless_told_otherwise(topic: Topic) -> None:
    topic.write(20)
    sink = Sink()
    topic.start(sink).awaitTermination()
    topic.write(20)
    topic.administer(lambda admin: admin.topics.delete_records({T0: 15}))
    with pytest.raises(Exception, match=r"t-0 was read up to 10, and begins at 15 now, since its retention deleted"):
        topic.start(sink).awaitTermination()
    topic.start(sink, failOnDataLoss="false").awaitTermination()
    assert len(sink.rows) == 20 + 5 + 10


def test_a_query_goes_on_with_what_comes(topic: Topic) -> None:
    sink = Sink()
    query = topic.start(sink, now=False, groupId="g")
    try:
        topic.write(10)
        query.processAllAvailable()
        topic.write(10)
        query.processAllAvailable()
        assert sorted(sink.rows, key=int) == topic.written
        assert topic.committed() == {T0: 10, TopicPartition("t", 1): 10}
    finally:
        query.stop()
