"""Topics in memory: what brokers would keep, in Arrow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID, uuid5

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kohort.client.types import PartitionInfo, TopicInfo, TopicPartition
from kohort.protocol.records.arrow import HEADER_TYPE, RECORD_SCHEMA
from kohort.protocol.records.partitioner import Partitioner
from kohort.spark.epoch import OffsetRange
from kohort.spark.executor_rpc.messages import FETCHED_RECORDS

_NAMESPACE: Final = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
_HEADERS: Final = pa.list_(pa.field("item", HEADER_TYPE, nullable=False))


class MemoryTopics:
    """Topics with partitions and offsets, of a test. Written in one thread, read in any.

    Args:
        now: the time (ms since 1970) of records that say none.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._partitions: dict[str, list[list[pa.RecordBatch]]] = {}
        self._written: dict[str, list[pa.RecordBatch]] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._keyless: dict[str, int] = {}

    def create(self, name: str, partitions: int) -> None:
        """A new topic, unless there is one of this name."""
        if name not in self._partitions:
            self._partitions[name] = [[] for _ in range(partitions)]
            self._written[name] = []
            self._keyless[name] = 0
            self._ends |= {TopicPartition(name, number): 0 for number in range(partitions)}

    def __contains__(self, name: object) -> bool:
        return name in self._partitions

    def names(self) -> list[str]:
        """Their names, in order."""
        return sorted(self._partitions)

    def partitions(self, name: str) -> int:
        """How many partitions a topic has. Raises KeyError."""
        return len(self._partitions[name])

    def end(self, at: TopicPartition) -> int:
        """The offset after a partition's last record. Raises KeyError."""
        return self._ends[at]

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The ends of those partitions that there are."""
        return {each: self._ends[each] for each in partitions if each in self._ends}

    def append(
        self,
        name: str,
        records: pa.Table,
        partition: int | None = None,
        partitioner: Partitioner = "murmur2",
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Writes records as a producer does; their partitions and offsets.

        Args:
            records: any of the columns key, value, timestamp (ms), headers, partition, as `Producer.send_table` takes.
            partition: of all records; by default that of the column, or that which a key leads to. Those without a key
                go to each partition in turn.
            partitioner: how a key leads to one.
        """
        count = records.num_rows
        if not count:
            return np.empty(0, np.int32), np.empty(0, np.int64)
        numbers = self._placed(name, records, partition, partitioner)
        offsets = np.empty(count, np.int64)
        for number in np.unique(numbers).tolist():
            mine = np.flatnonzero(numbers == number)
            at = TopicPartition(name, number)
            offsets[mine] = self._ends[at] + np.arange(len(mine))
        batch = self._batch(records, numbers, offsets)
        for number in np.unique(numbers).tolist():
            mine = np.flatnonzero(numbers == number)
            self._partitions[name][number].append(batch if len(mine) == count else batch.take(pa.array(mine)))
            self._ends[TopicPartition(name, number)] += len(mine)
        self._written[name].append(batch)
        return numbers, offsets

    def read(self, ranges: Sequence[OffsetRange]) -> pa.RecordBatch:
        """The records of ranges (`FETCHED_RECORDS`), in their order."""
        found = [batch for each in ranges for batch in self._range(each)]
        return pa.Table.from_batches(found, FETCHED_RECORDS).combine_chunks().to_batches()[0] if found else _NOTHING

    def written(self, name: str, first: int = 0) -> pa.Table:
        """What was written, without the first appends, in the order of writing (`FETCHED_RECORDS`). Raises KeyError."""
        return pa.Table.from_batches(self._written[name][first:], FETCHED_RECORDS)

    def appends(self, name: str) -> int:
        """How often something was written to a topic. Raises KeyError."""
        return len(self._written[name])

    # As `Cluster` and `EndOffsets` say it ------------------------------------------------------------------------

    async def topic(self, name: str) -> TopicInfo:
        """A topic's metadata. Raises KeyError."""
        numbers = range(self.partitions(name))
        return TopicInfo(
            name, uuid5(_NAMESPACE, name), False, {each: PartitionInfo(each, 0, 0, (0,), (0,)) for each in numbers}
        )

    async def of(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The ends of partitions."""
        return self.ends(partitions)

    async def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Their beginnings: nothing is removed."""
        return dict.fromkeys(partitions, 0)

    async def pause(self) -> None:
        """Nobody waits: who reads is asked to when something was written."""

    # -----------------------------------------------------------------------------------------------------------------

    def _range(self, wanted: OffsetRange) -> list[pa.RecordBatch]:
        found: list[pa.RecordBatch] = []
        end = self._ends[TopicPartition(wanted.topic, wanted.partition)]
        for batch in reversed(self._partitions[wanted.topic][wanted.partition]):
            first = end - batch.num_rows
            start, stop = max(wanted.start, first), min(wanted.end, end)
            if start < stop:
                found.append(batch.slice(start - first, stop - start))
            if first <= wanted.start:
                break
            end = first
        return found[::-1]

    def _placed(
        self, name: str, records: pa.Table, partition: int | None, partitioner: Partitioner
    ) -> npt.NDArray[np.int32]:
        count, of_topic = records.num_rows, self.partitions(name)
        if partition is not None:
            return np.full(count, partition, np.int32)
        if of_topic == 1:  # most tests' topics: needs no compiled code
            return np.zeros(count, np.int32)
        from kohort.protocol.records.partitioner import partitions_of

        numbers = np.full(count, -1, np.int32)
        if "key" in records.schema.names:
            numbers = partitions_of(records["key"].cast(pa.binary()), of_topic, partitioner)
        if "partition" in records.schema.names:
            given = records["partition"].combine_chunks().fill_null(-1).to_numpy(zero_copy_only=False)
            numbers = np.where(given >= 0, given, numbers).astype(np.int32)
        keyless = np.flatnonzero(numbers < 0)
        numbers[keyless] = (self._keyless[name] + np.arange(len(keyless))) % of_topic
        self._keyless[name] += len(keyless)
        return numbers

    def _batch(
        self, records: pa.Table, numbers: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64]
    ) -> pa.RecordBatch:
        count = records.num_rows
        given: Mapping[str, pa.ChunkedArray] = {name: records[name] for name in records.schema.names}
        none = pa.nulls(count, pa.binary())
        times = given["timestamp"].cast(pa.int64()).fill_null(self._now()) if "timestamp" in given else self._now()
        headers = given["headers"] if "headers" in given else _no_headers(count)
        columns = [
            pa.array(offsets),
            times if isinstance(times, pa.ChunkedArray) else pa.repeat(pa.scalar(times, pa.int64()), count),
            given.get("key", none),
            given.get("value", none),
            headers,
            pa.array(numbers),
        ]
        types = [pa.int64() if name == "timestamp" else FETCHED_RECORDS.field(name).type for name in _NAMES]
        arrays = [_whole(column).cast(kind) for column, kind in zip(columns, types, strict=True)]
        arrays[1] = arrays[1].cast(RECORD_SCHEMA.field("timestamp").type)
        return pa.RecordBatch.from_arrays(arrays, schema=FETCHED_RECORDS)


_NAMES: Final = FETCHED_RECORDS.names
_NOTHING: Final = pa.RecordBatch.from_pylist([], schema=FETCHED_RECORDS)


def _no_headers(count: int) -> pa.Array:
    """An empty list for each record; `pa.repeat` takes as long for these as all else that is done to a record."""
    offsets = pa.array(np.zeros(count + 1, np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array([], HEADER_TYPE), type=_HEADERS)


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
