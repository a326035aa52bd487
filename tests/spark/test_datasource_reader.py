"""The data source without Spark: planned ranges, and the batches of a task."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from kohort.client import Producer
from kohort.spark.datasource import KohortDataSource
from kohort.spark.datasource.planning import divide_ranges
from kohort.spark.datasource.reader import RangeInputPartition
from kohort.spark.reading import Range
from kohort.testing.broker import Broker
from pyspark_kohort import DefaultSource


async def write(broker: Broker, topic: str, table: pa.Table, partition: int | None = None) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        await producer.send_table(topic, table, partition=partition)


def source(broker: Broker, **options: str) -> KohortDataSource:
    return KohortDataSource({"servers": broker.bootstrap_servers, **options})


def ranges(broker: Broker, **options: str) -> list[Range]:
    made = source(broker, **options)
    partitions = made.reader(made.schema()).partitions()
    assert all(isinstance(each, RangeInputPartition) for each in partitions)
    return [each.range for each in partitions if isinstance(each, RangeInputPartition)]


def test_batches_have_the_schema_that_spark_requires(kohort_fresh_broker: Broker) -> None:
    assert DefaultSource.name() == "kohort"
    headers = [[("h", b"x")], [], [("a", None), ("b", b"")]]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    rows = [[{"key": name, "value": value} for name, value in each] for each in headers]
    table = pa.table({"key": [b"k", None, b""], "value": [b"v", b"", None], "headers": pa.array(rows, kind)})
    asyncio.run(write(kohort_fresh_broker, "t", table))
    for flag in ("true", "false"):
        made = source(kohort_fresh_broker, topic="t", includeHeaders=flag, startingOffsets='{"t": {"0": 1}}')
        schema = made.schema()
        reader = made.reader(schema)
        batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
        assert all(batch.schema.equals(to_arrow_schema(schema, timezone="UTC")) for batch in batches)
        found = pa.Table.from_batches(batches)
        found.validate(full=True)
        assert found.column("offset").to_pylist() == [1, 2]
        assert found.column("key").to_pylist() == [None, b""]
        if flag == "true":
            assert found.column("headers").to_pylist() == rows[1:]


def test_offsets_that_are_not_there(kohort_fresh_broker: Broker) -> None:
    asyncio.run(write(kohort_fresh_broker, "t", pa.table({"value": [b"x"] * 5})))
    options = {"topic": "t", "startingOffsets": '{"t": {"0": 9}}'}
    with pytest.raises(ValueError, match="t-0: the starting offset 9 isn't there: the log has 0 to 5"):
        made = source(kohort_fresh_broker, **options)
        made.reader(made.schema()).partitions()
    made = source(kohort_fresh_broker, failOnDataLoss="false", **options)
    assert made.reader(made.schema()).partitions() == []
    with pytest.raises(ValueError, match="topic t has no partition 3, only 0 to 0"):
        made = source(kohort_fresh_broker, assign='{"t": [3]}')
        made.reader(made.schema()).partitions()


def test_a_partition_that_is_named_twice_is_read_once(kohort_fresh_broker: Broker) -> None:
    asyncio.run(write(kohort_fresh_broker, "t", pa.table({"value": [b"x"] * 5})))
    for options in ({"subscribe": "t, t"}, {"assign": '{"t": [0, 0]}'}):
        made = source(kohort_fresh_broker, **options)
        assert len(made.reader(made.schema()).partitions()) == 1


def test_a_producer_setting_that_isnt_a_number() -> None:
    made = KohortDataSource({"servers": "localhost:9092", "topic": "t", "kafka.batch.size": "16k"})
    with pytest.raises(ValueError, match=r"option kafka\.batch\.size='16k' should be a number"):
        made.writer(StructType([StructField("value", StringType())]), overwrite=False)


def test_ranges_are_divided_evenly() -> None:
    ranges = [Range("t", 0, 0, 900), Range("t", 1, 50, 150)]
    assert divide_ranges(ranges, 1, None) == ranges
    divided = divide_ranges(ranges, 10, None)
    assert [each.end - each.start for each in divided] == [100] * 10
    assert divided[0].start == 0 and divided[8].end == 900 and divided[9] == Range("t", 1, 50, 150)
    assert len(divide_ranges(ranges, 1, 250)) == 5
    assert divide_ranges([], 7, None) == []


@pytest.mark.kohort({"num.partitions": 2})
def test_bounds_by_time(kohort_fresh_broker: Broker) -> None:
    """The first record at or after a time; one that has none begins, or ends, where the log does."""
    broker = kohort_fresh_broker
    for partition, times in enumerate(([1_000, 2_000, 3_000, 4_000], [2_500, 3_500])):
        table = pa.table({"value": [b"x"] * len(times), "timestamp": times})
        asyncio.run(write(broker, "t", table, partition))
    assert ranges(broker, topic="t", endingTimestamp="3000") == [Range("t", 0, 0, 2), Range("t", 1, 0, 1)]
    assert ranges(broker, topic="t", startingTimestamp="2001", endingTimestamp="4000") == [
        Range("t", 0, 2, 3), Range("t", 1, 0, 2),
    ]  # fmt: skip
    assert ranges(broker, topic="t", startingTimestamp="3600", endingTimestamp="9999") == [Range("t", 0, 3, 4)]
    assert ranges(broker, topic="t", startingTimestamp="3000", endingTimestamp="3000") == []
    times = {"startingOffsetsByTimestamp": '{"t": {"0": 3000, "1": 3000}}'}
    assert ranges(broker, topic="t", **times) == [Range("t", 0, 2, 4), Range("t", 1, 1, 2)]
    times["endingOffsetsByTimestamp"] = '{"t": {"0": 4000, "1": 9999}}'
    assert ranges(broker, topic="t", **times) == [Range("t", 0, 2, 3), Range("t", 1, 1, 2)]
    # A time for all counts before times by partition, and these before offsets, as in Spark's connector.
    assert ranges(broker, topic="t", startingTimestamp="4000", **times) == []
    assert ranges(broker, topic="t", startingOffsets="latest", **times) == [Range("t", 0, 2, 3), Range("t", 1, 1, 2)]


@pytest.mark.kohort({"num.partitions": 2})
def test_invalid_times(kohort_fresh_broker: Broker) -> None:
    asyncio.run(write(kohort_fresh_broker, "t", pa.table({"value": [b"x"] * 5}), 0))
    for options, why in {
        ("endingTimestamp", "soon"): "endingTimestamp='soon' should be a whole number, 0 at least",
        ("startingTimestamp", "-1"): "startingTimestamp='-1' should be a whole number, 0 at least",
        ("endingOffsetsByTimestamp", '{"t": {"0": -1}}'): "endingOffsetsByTimestamp=.* should be JSON such as",
        ("startingOffsetsByTimestamp", '{"t": 3}'): "startingOffsetsByTimestamp=.* should be JSON such as",
        ("endingOffsetsByTimestamp", '{"t": {"0": 7}}'): "the ending offsets lack t-1",
    }.items():
        with pytest.raises(ValueError, match=why):
            ranges(kohort_fresh_broker, topic="t", **dict([options]))


def test_topics_by_pattern(kohort_fresh_broker: Broker) -> None:
    """Whole names, and none of Kafka's own topics."""
    broker = kohort_fresh_broker
    for topic in ("flights-1", "flights-2", "old-flights-1"):
        asyncio.run(write(broker, topic, pa.table({"value": [b"x"] * 5})))
    assert ranges(broker, subscribePattern=r"flights-\d") == [Range("flights-1", 0, 0, 5), Range("flights-2", 0, 0, 5)]
    assert {each.topic for each in ranges(broker, subscribePattern=".*")} == {"flights-1", "flights-2", "old-flights-1"}
    assert ranges(broker, subscribePattern="flights") == []
    with pytest.raises(ValueError, match=r"subscribePattern='\*': nothing to repeat"):
        ranges(broker, subscribePattern="*")
    with pytest.raises(
        ValueError, match="the options topic, subscribePattern each say what to read: leave one of them"
    ):
        ranges(broker, subscribePattern=".*", topic="flights-1")


def test_max_records_per_partition(kohort_fresh_broker: Broker) -> None:
    asyncio.run(write(kohort_fresh_broker, "t", pa.table({"value": [b"x"] * 25})))
    found = ranges(kohort_fresh_broker, topic="t", maxRecordsPerPartition="10", startingOffsets='{"t": {"0": 2}}')
    assert found == [Range("t", 0, 2, 9), Range("t", 0, 9, 17), Range("t", 0, 17, 25)]
    for text in ("0", "many"):
        with pytest.raises(ValueError, match=f"maxRecordsPerPartition='{text}' should be a whole number, 1 at least"):
            ranges(kohort_fresh_broker, topic="t", maxRecordsPerPartition=text)
