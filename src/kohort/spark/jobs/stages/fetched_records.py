"""Records fetched by a stage, many at once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.client.config import ClientConfig
from kohort.protocol.records.arrow import RECORD_SCHEMA
from kohort.spark.epoch import DEAD_SCHEMA, EpochStatistics
from kohort.spark.executor_rpc.client import SplitInput
from kohort.spark.jobs.batches import one_batch
from kohort.spark.jobs.drop_reasons import UNREADABLE
from kohort.spark.jobs.stages.stream_time import largest_times

if TYPE_CHECKING:
    from kohort.spark.reading.reader import CorruptBatch

log = logging.getLogger("kohort.spark.jobs")

OnError: TypeAlias = Literal["fail", "drop", "dead"]
"""Whether unreadable records end the job, are counted, or are reported with their content."""

_AT_ONCE_ROWS: Final = 65_536
_AT_ONCE_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True)
class FetchedRecords:
    """Some records of one topic: in `kohort.protocol.records.RECORD_SCHEMA`, and the partition of each."""

    topic: str
    records: pa.RecordBatch
    partitions: pa.Array

    @property
    def keys(self) -> pa.Array:
        return self.records.column("key")

    @property
    def values(self) -> pa.Array:
        return self.records.column("value")

    @property
    def offsets(self) -> pa.Array:
        return self.records.column("offset")

    @property
    def times(self) -> pa.Array:
        """The records' timestamps, in ms."""
        return self.records.column("timestamp").cast(pa.int64())

    def filter(self, mask: pa.Array) -> FetchedRecords:
        return FetchedRecords(self.topic, self.records.filter(mask), self.partitions.filter(mask))

    def take(self, rows: pa.Array) -> FetchedRecords:
        return FetchedRecords(self.topic, self.records.take(rows), self.partitions.take(rows))


def fetch_records(
    split_input: SplitInput, servers: ClientConfig, statistics: EpochStatistics, on_error: OnError = "fail"
) -> Iterator[FetchedRecords]:
    """All records of a split, counted in `statistics`, many at once so that decoding costs little for each.

    Args:
        on_error: what becomes of batches whose records can't be read.
    """
    from kohort.spark.reading import shared
    from kohort.spark.reading.secrets import with_secrets

    def leave_out(batch: CorruptBatch) -> None:
        _leave_out(statistics, batch, keep=on_error == "dead")

    if split_input.records is not None:
        yield from _given(split_input, split_input.records, statistics)
        return
    ranges = [(each.topic, each.partition, each.start, each.end) for each in split_input.ranges]
    some: list[tuple[int, pa.RecordBatch]] = []
    rows = size = 0
    corrupt = None if on_error == "fail" else leave_out
    for number, batch in shared(with_secrets(servers, split_input.secrets)).read_all(ranges, corrupt=corrupt):
        some.append((ranges[number][1], batch))
        statistics.records += batch.num_rows
        size += _bytes(batch)
        rows += batch.num_rows
        if rows >= _AT_ONCE_ROWS or size >= _AT_ONCE_BYTES:
            yield _concatenated(ranges[number][0], some)
            statistics.bytes += size
            some, rows, size = [], 0, 0
    if some:
        yield _concatenated(ranges[0][0], some)
        statistics.bytes += size


def _given(split_input: SplitInput, records: pa.RecordBatch, statistics: EpochStatistics) -> Iterator[FetchedRecords]:
    """The records that came with the input, counted."""
    if records.num_rows:
        fetched = FetchedRecords(
            split_input.ranges[0].topic, records.select(RECORD_SCHEMA.names), records.column("partition")
        )
        statistics.records += records.num_rows
        statistics.bytes += _bytes(records)
        yield fetched


def note_times(statistics: EpochStatistics, partitions: pa.Array, times: pa.Array) -> None:
    """Notes the largest time (ms) of each partition, but for those that no window has."""
    for partition, time in largest_times(partitions, times).items():  # a few: one a partition
        if time is not None:
            statistics.max_times[partition] = max(time, statistics.max_times.get(partition, time))


def note_dead(statistics: EpochStatistics, fetched: FetchedRecords, rows: list[int], errors: list[str]) -> None:
    """Keeps bad records, as they are."""
    if not rows:
        return
    bad = fetched.take(pa.array(rows, pa.int64()))
    columns = [
        pa.array([bad.topic] * len(rows), pa.string()),
        bad.partitions,
        bad.offsets,
        bad.times,
        bad.keys,
        bad.values,
        bad.records.column("headers"),
        pa.array(errors, pa.string()),
    ]
    statistics.dead = pa.concat_tables([statistics.dead, pa.Table.from_arrays(columns, schema=DEAD_SCHEMA)])


def _leave_out(statistics: EpochStatistics, batch: CorruptBatch, *, keep: bool) -> None:
    """Counts the records of a batch that can't be read; keeps the batch as one bad record, if it is wanted."""
    topic, partition = batch.partition
    last = batch.next_offset - 1
    error = f"a batch that can't be read, offsets {batch.offset} to {last}: {batch.reason}"
    log.warning("topic %s, partition %d: %s", topic, partition, error)
    statistics.drop(UNREADABLE, batch.next_offset - batch.offset)
    if keep:
        columns = [[topic], [partition], [batch.offset], [batch.timestamp], [None], [batch.data], [[]], [error]]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, DEAD_SCHEMA, strict=True)]
        statistics.dead = pa.concat_tables([statistics.dead, pa.Table.from_arrays(arrays, schema=DEAD_SCHEMA)])


def _concatenated(topic: str, some: list[tuple[int, pa.RecordBatch]]) -> FetchedRecords:
    numbers = np.array([partition for partition, _ in some], np.int32)
    lengths = [batch.num_rows for _, batch in some]
    batches = [batch for _, batch in some]
    records = batches[0] if len(batches) == 1 else one_batch(pa.Table.from_batches(batches))
    return FetchedRecords(topic, records, pa.array(np.repeat(numbers, lengths)))


def _bytes(batch: pa.RecordBatch) -> int:
    keys, values = batch.column("key"), batch.column("value")
    return (pc.sum(pc.binary_length(keys)).as_py() or 0) + (pc.sum(pc.binary_length(values)).as_py() or 0)
