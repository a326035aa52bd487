"""The data source without Spark: what is planned, and the batches that a task gives."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from kohort.client import Producer
from kohort.spark.datasource import KohortDataSource
from kohort.spark.datasource.planning import divided
from kohort.spark.reading import Range
from kohort.testing.broker import Broker
from pyspark_kohort import DefaultSource


async def write(broker: Broker, topic: str, table: pa.Table) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        await producer.send_table(topic, table)


def source(broker: Broker, **options: str) -> KohortDataSource:
    return KohortDataSource({"servers": broker.bootstrap_servers, **options})


def test_batches_have_exactly_the_schema_that_spark_wants(kohort_fresh_broker: Broker) -> None:
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
        batches = [batch for part in reader.partitions() for batch in reader.read(part)]
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


def test_a_producer_setting_that_is_no_number() -> None:
    made = KohortDataSource({"servers": "localhost:9092", "topic": "t", "kafka.batch.size": "16k"})
    with pytest.raises(ValueError, match=r"option kafka\.batch\.size='16k' should be a number"):
        made.writer(StructType([StructField("value", StringType())]), overwrite=False)


def test_ranges_are_divided_evenly_and_wholly() -> None:
    ranges = [Range("t", 0, 0, 900), Range("t", 1, 50, 150)]
    assert divided(ranges, 1, None) == ranges
    parts = divided(ranges, 10, None)
    assert [part.end - part.start for part in parts] == [100] * 10
    assert parts[0].start == 0 and parts[8].end == 900 and parts[9] == Range("t", 1, 50, 150)
    assert len(divided(ranges, 1, 250)) == 5
    assert divided([], 7, None) == []
