"""A driver that is a dictionary, for stages without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa

from kohort.protocol.records.arrow import RECORD_SCHEMA
from kohort.spark.epoch import EpochStatistics, OffsetRange
from kohort.spark.executor_rpc.client import RpcAddress, SplitInput
from kohort.spark.jobs.stages.context import StageContext
from kohort.spark.reading.reader import CorruptBatch


@dataclass
class FakeRpc:
    """Stores by (name, partition), and what was reported."""

    stores: dict[tuple[str, int | None], dict[bytes, bytes]] = field(default_factory=dict)
    ranges: tuple[OffsetRange, ...] = ()
    stream_times: Mapping[int, int] = field(default_factory=dict)
    reports: dict[str, EpochStatistics] = field(default_factory=dict)
    asked: list[bytes] = field(default_factory=list)
    splits: list[tuple[int, bool]] = field(default_factory=list)
    partitions: int = 0

    def request_input(
        self, subtopology: str, split: int, splits: int, *, whole_partitions: bool = False, topic: str = ""
    ) -> SplitInput:
        self.splits.append((split, whole_partitions))
        return SplitInput(1, self.ranges, self.stream_times, self.partitions)

    def lookup(self, store: str, partitions: pa.Array | None, keys: pa.Array) -> pa.Array:
        numbers = [None] * len(keys) if partitions is None else partitions.to_pylist()
        texts = [key.encode() if isinstance(key, str) else key for key in keys.to_pylist()]
        self.asked += texts
        found = [self.stores.get((store, number), {}).get(key) for number, key in zip(numbers, texts, strict=True)]
        return pa.array(found, pa.binary())

    def report(self, subtopology: str, run: int, branch: int, split: int, stage: str, read: EpochStatistics) -> bool:
        self.reports[stage] = read
        return True

    @property
    def context(self) -> StageContext:
        return StageContext(cast(RpcAddress, self), "0", 0, 1)


def splits(*numbers: int) -> Iterator[pa.RecordBatch]:
    """What a reading stage is given: these splits."""
    return (pa.RecordBatch.from_pydict({"id": [number]}) for number in numbers)


class FakeReader:
    """Gives records of (partition, offset, timestamp, key, value), and meets corrupt batches."""

    def __init__(
        self,
        records: Sequence[tuple[int, int, int, bytes | None, bytes | None]],
        batches: Sequence[CorruptBatch] = (),
    ) -> None:
        self._records = records
        self._batches = batches

    def read_all(
        self, ranges: Sequence[tuple[str, int, int, int]], *, corrupt: Callable[[CorruptBatch], None] | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        for batch in self._batches:
            assert corrupt is not None
            corrupt(batch)
        for number, (_, partition, start, end) in enumerate(ranges):
            mine = [each for each in self._records if each[0] == partition and start <= each[1] < end]
            for _, offset, timestamp, key, value in mine:
                row: dict[str, Any] = {
                    "offset": offset,
                    "timestamp": timestamp,
                    "key": key,
                    "value": value,
                    "headers": [],
                }
                yield number, pa.RecordBatch.from_pylist([row], schema=RECORD_SCHEMA)
