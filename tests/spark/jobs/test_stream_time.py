"""Stream time goes from record to record, however they are divided into epochs and fetches."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark import reading
from kohort.spark.epoch import OffsetRange
from kohort.spark.jobs.stages import fetched_records
from kohort.spark.jobs.stages.read_rows import read_rows_stage
from kohort.spark.jobs.stages.stream_time import StreamTimes
from kohort.spark.jobs.time_bounds import LAST_MS
from kohort.spark.program.internal_columns import PARTITION, STREAM_TIME, TIMESTAMP
from tests.spark.jobs.fakes import FakeReader, FakeRpc, splits
from tests.spark.jobs.test_read_rows import READING
from tests.spark.jobs.windowed import stream_times

TIMES = st.one_of(st.none(), st.integers(-5, 5), st.integers(LAST_MS - 1, LAST_MS + 2))
RECORDS = st.lists(st.tuples(st.integers(0, 2), TIMES), max_size=20)


def _known(time: int | None) -> int | None:
    return None if time is None or time > LAST_MS else time


@given(RECORDS, st.dictionaries(st.integers(0, 2), st.integers(-5, 5)), st.integers(0, 20))
def test_it_is_the_greatest_time_so_far(
    records: list[tuple[int, int | None]], before: dict[int, int], cut: int
) -> None:
    clock = StreamTimes(before)
    found: list[int | None] = []
    for some in (records[:cut], records[cut:]):
        partitions = pa.array([partition for partition, _ in some], pa.int32())
        found += clock.advance(partitions, pa.array([time for _, time in some], pa.int64())).to_pylist()
    for partition in range(3):
        mine = [_known(time) for number, time in records if number == partition]
        expected = stream_times(mine, before.get(partition))
        assert [time for (number, _), time in zip(records, found, strict=True) if number == partition] == expected


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), max_size=16), st.integers(0, 16), st.integers(1, 5))
def test_rows_have_the_same_in_any_epoch(records: list[tuple[int, int]], cut: int, at_once: int) -> None:
    """What is committed of one epoch is what the next begins with."""
    log = [(partition, offset, time, b"k", b'{"a":1}') for offset, (partition, time) in enumerate(records)]
    wanted = replace(
        READING, event_time=None, whole_partitions=True, internal_columns=(PARTITION, TIMESTAMP, STREAM_TIME)
    )
    rpc = FakeRpc()
    found: list[tuple[int, int]] = []
    with (
        mock.patch.object(reading, "shared", lambda servers: FakeReader(log), create=True),
        mock.patch.object(fetched_records, "_AT_ONCE_ROWS", at_once),
    ):
        for start, end in ((0, cut), (cut, 16)):
            rpc.ranges = tuple(OffsetRange("t", partition, start, end) for partition in (0, 1))
            rows = [row for batch in read_rows_stage(rpc.context, wanted)(splits(0)) for row in batch.to_pylist()]
            found += [(row[PARTITION], row[STREAM_TIME]) for row in rows]
            for partition, time in rpc.reports["rows"].max_times.items():
                rpc.stream_times = {**rpc.stream_times, partition: max(time, rpc.stream_times.get(partition, time))}
    for partition in (0, 1):
        mine = [time for number, time in records if number == partition]
        assert [time for number, time in found if number == partition] == stream_times(mine)
