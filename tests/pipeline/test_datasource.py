"""Topics as DataFrames: `spark.read.format("kohort")`, `df.write.format("kohort")`, beside librdkafka."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession, functions

from kohort.testing.broker import Broker


def made(broker: Broker, topic: str, partitions: int = 2) -> Producer:
    """A topic, and librdkafka to write to it."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(20)
    return Producer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": "lz4"})


def read(spark: SparkSession, broker: Broker, **options: str) -> Any:
    return spark.read.format("kohort").options(servers=broker.bootstrap_servers, **options).load()


def test_what_librdkafka_wrote_is_read(spark: SparkSession, kohort_fresh_broker: Broker) -> None:
    producer = made(kohort_fresh_broker, "t")
    before = int(time.time() * 1000) - 1
    for number in range(500):
        headers = [("n", b"%d" % number)] if number % 2 else []
        key = None if number % 3 == 0 else b"k%d" % number
        value = None if number == 7 else b"v%d" % number
        producer.produce("t", value, key=key, partition=number % 2, headers=headers)
    producer.flush(20)
    del producer  # it would go on to look for the broker

    frame = read(spark, kohort_fresh_broker, topic="t", includeHeaders="true")
    assert frame.columns == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
    ]  # fmt: skip
    rows = sorted(frame.collect(), key=lambda row: (row.offset, row.partition))
    assert [row.value for row in rows] == [None if n == 7 else b"v%d" % n for n in range(500)]
    assert [row.key for row in rows] == [None if n % 3 == 0 else b"k%d" % n for n in range(500)]
    assert [(row.partition, row.offset) for row in rows[:4]] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert [[(h.key, bytes(h.value)) for h in row.headers] for row in rows[:2]] == [[], [("n", b"1")]]
    assert {row.topic for row in rows} == {"t"}
    assert {row.timestampType for row in rows} == {0}
    assert min(row.timestamp.timestamp() for row in rows) * 1000 >= before

    some = json.dumps({"t": {"0": 10, "1": -2}})
    until = json.dumps({"t": {"0": -1, "1": 5}})
    ranged = read(spark, kohort_fresh_broker, subscribe="t", startingOffsets=some, endingOffsets=until)
    assert ranged.groupBy("partition").count().orderBy("partition").collect() == [(0, 240), (1, 5)]
    split = read(spark, kohort_fresh_broker, topic="t", minPartitions="5", startingTimestamp=str(before))
    assert split.rdd.getNumPartitions() >= 5
    assert split.count() == 500
    none = read(spark, kohort_fresh_broker, topic="t", startingTimestamp=str(before + 3_600_000))
    assert none.count() == 0


def test_what_is_written_is_read_by_librdkafka(spark: SparkSession, kohort_fresh_broker: Broker) -> None:
    made(kohort_fresh_broker, "out", 3)
    frame = spark.range(1000).select(
        functions.col("id").cast("string").alias("key"),
        functions.to_json(functions.struct("id")).alias("value"),
        functions.when(functions.col("id") < 10, functions.lit(2)).cast("int").alias("partition"),
        functions.array(
            functions.struct(functions.lit("h").alias("key"), functions.lit("x").cast("binary").alias("value"))
        ).alias("headers"),
    )
    options = {"servers": kohort_fresh_broker.bootstrap_servers, "topic": "out", "kafka.compression.type": "zstd"}
    frame.write.format("kohort").options(**options).mode("append").save()
    by_column = spark.createDataFrame([("a", "out"), ("b", "out")], "value string, topic string")
    by_column.write.format("kohort").option("servers", options["servers"]).mode("append").save()

    consumer = Consumer({"bootstrap.servers": options["servers"], "group.id": "g", "enable.partition.eof": False})
    consumer.assign([TopicPartition("out", number, 0) for number in range(3)])
    found = []
    while len(found) < 1002 and (message := consumer.poll(20)) is not None:
        found.append(message)
    consumer.close()
    with_keys = {int(m.key()): m for m in found if m.key() is not None}
    assert {n: json.loads(m.value()) for n, m in with_keys.items()} == {n: {"id": n} for n in range(1000)}
    assert {with_keys[n].partition() for n in range(10)} == {2}
    assert with_keys[5].headers() == [("h", b"x")]
    assert sorted(m.value() for m in found if m.key() is None) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "say what to read"),
        ({"topic": "t", "assign": '{"t": [0]}'}, "the options topic, assign each say what to read: leave one of them"),
        ({"topic": "t", "startingOffsets": "soon"}, "startingOffsets='soon'"),
        ({"topic": "t", "startingOffset": "latest"}, "'startingoffset' isn't known"),
        ({"topic": "t", "kafka.acls": "x"}, "unknown key 'acls'"),
    ],
)
def test_options_that_cannot_be(spark: SparkSession, kohort_broker: Broker, options: dict[str, str], why: str) -> None:
    with pytest.raises(Exception, match=why):
        read(spark, kohort_broker, **options).collect()


def test_a_stream_is_not_written_as_such(spark: SparkSession, tmp_path: Path) -> None:
    written = (
        spark.readStream.format("rate").load().writeStream.format("kohort").options(servers="127.0.0.1:1", topic="t")
    )
    with pytest.raises(Exception, match=r"or make it an application, kohort\.spark\.StreamsApp"):
        written.option("checkpointLocation", str(tmp_path)).start().awaitTermination()


def test_columns_that_cannot_be_written(spark: SparkSession, kohort_broker: Broker) -> None:
    with pytest.raises(Exception, match="column id can't be written"):
        spark.range(3).write.format("kohort").options(servers=kohort_broker.bootstrap_servers, topic="t").mode(
            "append"
        ).save()
