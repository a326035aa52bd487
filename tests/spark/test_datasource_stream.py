"""The data source as a stream, without Spark: options, offsets of micro-batches, and their records."""

from __future__ import annotations

import asyncio
import json
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from kohort.client import Producer
from kohort.client.admin import Admin
from kohort.client.types import TopicPartition
from kohort.spark.datasource import KohortDataSource
from kohort.spark.datasource.stream_offsets import (
    DataLossError,
    batch_ranges,
    check_gone,
    from_json,
    limited_end,
    next_start,
    to_json,
)
from kohort.spark.datasource.stream_options import StreamOptions
from kohort.spark.datasource.stream_reader import TopicStreamReader
from kohort.spark.reading import Range
from kohort.testing.broker import Broker

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
NOW = ReadAllAvailable()

backlogs = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["t", "u"]), st.integers(0, 9)),
    st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)),
    min_size=1,
)


@given(backlogs, st.integers(1, 10**6))
def test_a_limit_is_kept_and_used_up(backlog: dict[TopicPartition, tuple[int, int]], most: int) -> None:
    start = {at: begin for at, (begin, _) in backlog.items()}
    end = {at: begin + size for at, (begin, size) in backlog.items()}
    found = limited_end(start, end, most)
    taken = {at: found[at] - start[at] for at in end}
    assert found.keys() == end.keys()
    assert all(0 <= taken[at] <= backlog[at][1] for at in end)
    assert sum(taken.values()) == min(most, sum(size for _, size in backlog.values()))


@given(backlogs, st.integers(1, 30))
def test_no_partition_waits_for_ever_for_those_with_more(
    backlog: dict[TopicPartition, tuple[int, int]], most: int
) -> None:
    """However much comes to the others meanwhile."""
    start = {at: begin for at, (begin, _) in backlog.items()}
    for _ in range(len(start)):
        start = limited_end(start, {at: offset + 10**9 for at, offset in start.items()}, most)
    assert all(start[at] > begin for at, (begin, _) in backlog.items())


@given(st.dictionaries(st.builds(TopicPartition, st.text(), st.integers(0, 99)), st.integers(0, 2**63 - 1)))
def test_offsets_survive_the_checkpoint(offsets: dict[TopicPartition, int]) -> None:
    assert from_json(json.loads(json.dumps(to_json(offsets)))) == offsets


def test_a_partition_that_was_made_anew_is_not_limited() -> None:
    assert limited_end({T0: 100, T1: 0}, {T0: 7, T1: 50}, 10) == {T0: 7, T1: 10}


def test_new_partitions_begin_at_0_and_new_topics_where_they_do() -> None:
    assert next_start({T0: 5}, [T0, T1, U0], {T1: 2, U0: 9}) == {T0: 5, T1: 0, U0: 9}


def ranges(start: dict[TopicPartition, int], end: dict[TopicPartition, int], first: dict[TopicPartition, int]) -> Any:
    return batch_ranges(start, end, first, fail_on_data_loss=False)


@pytest.mark.parametrize(
    ("start", "end", "first", "said", "left"),
    [
        ({T0: 2}, {T0: 9}, {T0: 5}, "t-0 was read up to 2, and begins at 5 now", [Range("t", 0, 5, 9)]),
        ({T0: 2}, {T0: 9}, {T0: 9}, "t-0 was read up to 2, and begins at 9 now", []),
        ({T0: 8}, {T0: 3}, {T0: 0}, "t-0 was read up to 8, and ends at 3 now", [Range("t", 0, 0, 3)]),
        ({T0: 8}, {T0: 9}, {}, "t-0 isn't there any more", []),
        ({T0: 9}, {T0: 9, T1: 4}, {T0: 0, T1: 1}, "t-1 was read up to 0, and begins at 1", [Range("t", 1, 1, 4)]),
    ],
)
def test_lost_records_are_an_error_or_left_out(
    start: dict[TopicPartition, int],
    end: dict[TopicPartition, int],
    first: dict[TopicPartition, int],
    said: str,
    left: list[Range],
) -> None:
    with pytest.raises(DataLossError, match=said):
        batch_ranges(start, end, first, fail_on_data_loss=True)
    assert ranges(start, end, first) == left


def test_a_partition_that_is_gone() -> None:
    check_gone({T0: 1}, {T0: 1, T1: 0}, fail_on_data_loss=True)
    check_gone({T0: 1, T1: 4}, {T0: 1}, fail_on_data_loss=False)
    with pytest.raises(DataLossError, match="t-1 isn't there any more: records are lost"):
        check_gone({T0: 1, T1: 4}, {T0: 1}, fail_on_data_loss=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"endingOffsets": "latest"}, "'endingoffsets': a stream has no end"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger='0' should be a whole number, 1 at least"),
        ({"maxOffsets": "5"}, "'maxoffsets' isn't known"),
    ],
)
def test_options_that_a_stream_cannot_have(options: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        StreamOptions.of({"servers": "h:1", "topic": "t", **options})


def test_options_that_only_a_stream_has() -> None:
    made = KohortDataSource({"servers": "h:1", "topic": "t", "groupId": "g"})
    with pytest.raises(ValueError, match="'groupid' is for readStream only"):
        made.reader(made.schema())


def stream(broker: Broker, **options: str) -> TopicStreamReader:
    made = KohortDataSource({"servers": broker.bootstrap_servers, "topic": "t", **options})
    return made.streamReader(made.schema())


def values(reader: TopicStreamReader, start: Any, end: Any) -> list[bytes]:
    """The records of a micro-batch, by a reader that was sent to an executor."""
    sent = pickle.loads(pickle.dumps(reader))
    return [
        value
        for each in reader.partitions(start, end)
        for batch in sent.read(each)
        for value in batch["value"].to_pylist()
    ]


def administer(broker: Broker, work: Any) -> Any:
    async def whole() -> Any:
        async with Admin(broker.bootstrap_servers) as admin:
            return await work(admin)

    return asyncio.run(whole())


def write(broker: Broker, first: int, count: int, partition: int = 0) -> None:
    async def whole() -> None:
        async with Producer(broker.bootstrap_servers) as producer:
            rows = pa.table({"value": [b"%d" % n for n in range(first, first + count)]})
            await producer.send_table("t", rows, partition=partition)

    asyncio.run(whole())


def test_micro_batches_one_after_the_other(kohort_fresh_broker: Broker) -> None:
    administer(kohort_fresh_broker, lambda admin: admin.topics.create("t", partitions=2))
    write(kohort_fresh_broker, 0, 10)
    begin = stream(kohort_fresh_broker)
    assert begin.initialOffset() == {"t": {"0": 10, "1": 0}}
    begin.stop()
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "6", "groupId": "g"}
    first = stream(kohort_fresh_broker, **options)
    start = first.initialOffset()
    assert start == {"t": {"0": 0, "1": 0}}
    assert first.getDefaultReadLimit() == ReadMaxRows(6)
    end = first.latestOffset(start, ReadMaxRows(6))
    assert end == {"t": {"0": 6, "1": 0}}
    assert first.latestOffset(start, NOW) == first.reportLatestOffset() == {"t": {"0": 10, "1": 0}}
    assert values(first, start, end) == [b"%d" % n for n in range(6)]
    first.latestOffset(end, NOW)
    first.stop()
    first.stop()
    committed = administer(kohort_fresh_broker, lambda admin: admin.group_offsets.committed("g"))
    assert {at: each.offset for at, each in committed.items()} == {T0: 6, T1: 0}
    again = stream(kohort_fresh_broker, **options)  # as after a crash: from the checkpoint, not from the group
    assert values(again, start, end) == [b"%d" % n for n in range(6)]
    again.prepareForTriggerAvailableNow()
    write(kohort_fresh_broker, 10, 5)
    write(kohort_fresh_broker, 15, 5, partition=1)
    assert again.latestOffset(end, NOW) == {"t": {"0": 10, "1": 0}}
    administer(kohort_fresh_broker, lambda admin: admin.topics.delete_records({T0: 8}))
    with pytest.raises(DataLossError, match="t-0 was read up to 6, and begins at 8 now"):
        again.partitions(end, {"t": {"0": 10, "1": 0}})
    again.stop()
    lenient = stream(kohort_fresh_broker, failOnDataLoss="false", **options)
    assert values(lenient, end, {"t": {"0": 10, "1": 0}}) == [b"8", b"9"]
    lenient.stop()


def test_a_group_with_members_does_not_stop_the_stream(
    kohort_fresh_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    from tests.client.administration.members import join_classic

    write(kohort_fresh_broker, 0, 1)
    asyncio.run(join_classic(kohort_fresh_broker.bootstrap_servers, "g", T0))
    reader = stream(kohort_fresh_broker, groupId="g")
    for _ in range(2):
        assert reader.latestOffset({"t": {"0": 1}}, NOW) == {"t": {"0": 1}}
    reader.stop()
    assert caplog.text.count("group g: offsets of the stream can't be committed") == 1
