"""Topics in memory, beside lists."""

from __future__ import annotations

import asyncio

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.types import TopicPartition
from kohort.protocol.records.arrow import HEADER_TYPE
from kohort.protocol.records.partitioner import partitions_of
from kohort.spark.epoch import OffsetRange
from kohort.spark.executor_rpc.messages import FETCHED_RECORDS
from kohort.spark.testing.topics import MemoryTopics

KEYS = st.lists(st.none() | st.binary(max_size=3), max_size=6)


@given(st.integers(1, 3), st.lists(KEYS, max_size=6), st.data())
def test_what_is_read_is_what_was_written_in_its_order(
    partitions: int, appends: list[list[bytes | None]], data: st.DataObject
) -> None:
    topics = MemoryTopics(lambda: 5)
    topics.create("t", partitions)
    expected: dict[int, list[tuple[int, bytes | None]]] = {number: [] for number in range(partitions)}
    for keys in appends:
        numbers, offsets = topics.append("t", pa.table({"key": pa.array(keys, pa.binary())}))
        for key, number, offset in zip(keys, numbers.tolist(), offsets.tolist(), strict=True):
            assert offset == len(expected[number])
            expected[number].append((offset, key))
        assert [
            (number, wanted)
            for number, wanted in zip(
                numbers.tolist(), partitions_of(pa.array(keys, pa.binary()), partitions), strict=True
            )
            if wanted not in (-1, number)
        ] == []
    for number, rows in expected.items():
        assert topics.end(TopicPartition("t", number)) == len(rows)
        start = data.draw(st.integers(0, len(rows)))
        end = data.draw(st.integers(start, len(rows)))
        found = topics.read([OffsetRange("t", number, start, end)])
        assert found.schema == FETCHED_RECORDS
        assert list(zip(found["offset"].to_pylist(), found["key"].to_pylist(), strict=True)) == rows[start:end]
        assert set(found["partition"].to_pylist()) <= {number}
    assert topics.written("t")["key"].to_pylist() == [key for keys in appends for key in keys]


@given(st.integers(1, 3), st.integers(0, 9))
def test_records_without_headers_have_none(partitions: int, count: int) -> None:
    topics = MemoryTopics(lambda: 5)
    topics.create("t", partitions)
    topics.append("t", pa.table({"key": pa.array([b"a", b"b", b"c"] * count)}))
    found = topics.written("t")
    found.validate(full=True)
    assert found["headers"].to_pylist() == [[]] * (3 * count)


def test_records_have_the_time_the_headers_and_the_partition_that_they_say() -> None:
    topics = MemoryTopics(lambda: 5)
    topics.create("t", 3)
    headers = pa.array([[{"key": "trace", "value": b"1"}], []], pa.list_(HEADER_TYPE))
    given = {
        "timestamp": pa.array([None, 7], pa.int64()),
        "headers": headers,
        "partition": pa.array([2, None], pa.int32()),
    }
    topics.append("t", pa.table(given))
    written = topics.written("t")
    assert written["timestamp"].cast(pa.int64()).to_pylist() == [5, 7]
    assert written["headers"].to_pylist() == [[{"key": "trace", "value": b"1"}], []]
    assert written["partition"].to_pylist() == [2, 0]


def test_several_ranges_come_in_their_order() -> None:
    topics = MemoryTopics(lambda: 5)
    topics.create("t", 2)
    for number in range(6):
        topics.append("t", pa.table({"value": pa.array([b"%d" % number])}), number % 2)
    found = topics.read([OffsetRange("t", 1, 1, 3), OffsetRange("t", 0, 0, 2)])
    assert found["value"].to_pylist() == [b"3", b"5", b"0", b"2"]
    assert topics.read([]).num_rows == topics.read([OffsetRange("t", 0, 2, 2)]).num_rows == 0


def test_a_topic_is_there_once_it_was_created() -> None:
    topics = MemoryTopics(lambda: 5)
    topics.create("t", 2)
    topics.create("t", 9)
    assert "t" in topics and "u" not in topics
    assert sorted(asyncio.run(topics.topic("t")).partitions) == [0, 1]
    assert topics.ends([TopicPartition("t", 1), TopicPartition("t", 2)]) == {TopicPartition("t", 1): 0}
