"""What stages have in common: where they are, what they count, how they read."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.client.config import ClientConfig
from kohort.spark.executor_rpc.client import RpcAddress, SplitInput
from kohort.spark.jobs.batches import one_batch
from kohort.spark.jobs.epoch import DEAD_SCHEMA, NO_WINDOW, EpochStatistics

PARTITION: Final = "_partition"
"""INT: the partition, so the task, that a row belongs to."""
TIMESTAMP: Final = "_time"
"""BIGINT: a record's time, in ms."""
STREAM_TIME: Final = "_stream_time"
"""BIGINT: the stream time of its task at which a row was read, its own included, in ms; null before there is any."""
OFFSET: Final = "_offset"
"""BIGINT: a record's offset."""
KEY: Final = "_key"
"""STRING: the key in a store; of rows that no window takes `LATE` or `NO_WINDOW`, which no key is."""
LATE: Final = "late"
"""The `_key` of what came after its window was closed."""
LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999, in ms since 1970: what is later is no time, but a number in another unit."""
RECORDS: Final = "_records"
"""BIGINT: how many rows went into a partial; 0 for prior values."""

READING: Final = "rows"
MERGING: Final = "priors"
JOINING: Final = "join"
"""What stages are called in reports: those that read records, those that bring in what the store has, and those that
join a table, with a number."""

_CHUNK_ROWS: Final = 65_536
_CHUNK_BYTES: Final = 32 * 1024 * 1024

_SETTLING: Final = (1, 3, 10)
_tasks = 0


@dataclass(frozen=True)
class Place:
    """Where a stage belongs: the line to its driver, its lane, its branch, and how many splits there are."""

    line: RpcAddress
    lane: str
    branch: int
    splits: int


@dataclass(frozen=True)
class Chunk:
    """Some records of one topic: in `kohort.protocol.records.RECORD_SCHEMA`, and the partition of each."""

    topic: str
    records: pa.RecordBatch
    partitions: pa.Array

    @property
    def times(self) -> pa.Array:
        """The records' timestamps, in ms."""
        return self.records.column("timestamp").cast(pa.int64())


def numbered(number: int) -> str:
    """What a column of the user's is called on its way into a stage: `mapInArrow` can't take names with dots."""
    return f"_{number}"


def splits_of(batches: Iterator[pa.RecordBatch]) -> list[int]:
    """The splits that a reading stage is given: rows of `Plans.source`, which say it themselves.

    Spark's task number isn't it: a transform may unite a stream with itself, or coalesce it, so that a task has another
    number, or several splits.
    """
    return [split for batch in batches for split in batch.column(0).to_pylist()]


def task_number() -> int:
    """Which of the Spark stage's tasks this is."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def settled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches; when they are over, this process is settled.

    Spark's worker collects garbage after each task. That walks over all there is, modules and compiled code too: most
    of what a small task costs. What is there after the first tasks is there to stay, so it's left out from then on.
    """
    global _tasks
    yield from batches
    _tasks += 1
    if _tasks in _SETTLING:
        gc.collect()
        gc.freeze()


def read_chunks(task: SplitInput, servers: ClientConfig, read: EpochStatistics) -> Iterator[Chunk]:
    """All records of a task, counted in `read`, many at once so that decoding costs little for each."""
    from kohort.spark.reading import shared

    ranges = [(each.topic, each.partition, each.start, each.end) for each in task.ranges]
    some: list[tuple[int, pa.RecordBatch]] = []
    rows = size = 0
    for number, batch in shared(servers).read_all(ranges):
        some.append((ranges[number][1], batch))
        read.records += batch.num_rows
        size += _bytes(batch)
        rows += batch.num_rows
        if rows >= _CHUNK_ROWS or size >= _CHUNK_BYTES:
            yield _chunk(ranges[number][0], some)
            read.bytes += size
            some, rows, size = [], 0, 0
    if some:
        yield _chunk(ranges[0][0], some)
        read.bytes += size


def note_times(read: EpochStatistics, partitions: pa.Array, times: pa.Array) -> None:
    """Remember the largest time (ms) of each partition, but for those that no window has."""
    table = pa.table({"partition": partitions, "time": times})
    table = table.filter(pc.less_equal(table["time"], LAST_MS))
    largest = table.group_by("partition").aggregate([("time", "max")])
    found = zip(largest.column("partition").to_pylist(), largest.column("time_max").to_pylist(), strict=True)
    for partition, time in found:  # a few: one a partition
        if time is not None:
            read.max_times[partition] = max(time, read.max_times.get(partition, time))


def in_windows(keys: pa.Array, counts: pa.Array, read: EpochStatistics) -> pa.Array:
    """Which rows have the key of a window. The others are counted, each as the number of rows that it stands for."""
    late, none = pc.equal(keys, LATE), pc.equal(keys, NO_WINDOW)
    read.late += pc.sum(counts.filter(late)).as_py() or 0
    read.drop(NO_WINDOW, pc.sum(counts.filter(none)).as_py() or 0)
    return pc.invert(pc.or_(late, none))


def note_dead(read: EpochStatistics, chunk: Chunk, rows: list[int], errors: list[str]) -> None:
    """Remember bad records, as they are."""
    if not rows:
        return
    records = chunk.records.take(pa.array(rows, pa.int64()))
    columns = [
        pa.array([chunk.topic] * len(rows), pa.string()),
        chunk.partitions.take(pa.array(rows, pa.int64())),
        records.column("offset"),
        records.column("timestamp").cast(pa.int64()),
        records.column("key"),
        records.column("value"),
        records.column("headers"),
        pa.array(errors, pa.string()),
    ]
    read.dead = pa.concat_tables([read.dead, pa.Table.from_arrays(columns, schema=DEAD_SCHEMA)])


def window_starts(keys: pa.Array) -> pa.Array:
    """The window's start (ms) of keys in a store of windows: `{"window":"2013-01-01T05:00:00.000Z",…}`.

    Raises:
        pa.ArrowInvalid: a key isn't like that.
    """
    text = pc.utf8_slice_codeunits(keys, 11, 35)
    return text.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())


def _chunk(topic: str, some: list[tuple[int, pa.RecordBatch]]) -> Chunk:
    numbers = np.array([partition for partition, _ in some], np.int32)
    lengths = [batch.num_rows for _, batch in some]
    batches = [batch for _, batch in some]
    records = batches[0] if len(batches) == 1 else one_batch(pa.Table.from_batches(batches))
    return Chunk(topic, records, pa.array(np.repeat(numbers, lengths)))


def _bytes(batch: pa.RecordBatch) -> int:
    keys, values = batch.column("key"), batch.column("value")
    return (pc.sum(pc.binary_length(keys)).as_py() or 0) + (pc.sum(pc.binary_length(values)).as_py() or 0)
