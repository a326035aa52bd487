"""How fast records are read that are there."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final

from kohort.cli.data.progress import Progress
from kohort.cli.measuring.outcome import Outcome
from kohort.client.types import TopicPartition

if TYPE_CHECKING:
    from kohort.cli.data.record_path import RecordPath
    from kohort.client.consumer import Consumer

_POLL_MS: Final = 500


class ConsumingMeasure:
    """Reads a topic from its beginning: all that is there when it begins, or the first records of it.

    Args:
        consumer: started, without a group.
        records: at most so many; None for all.
    """

    def __init__(self, consumer: Consumer, topic: str, path: RecordPath, *, records: int | None) -> None:
        self.outcome = Outcome("consume", topic)
        self.progress = Progress()
        self._consumer = consumer
        self._path = path
        self._records = records

    async def run(self, partitions: list[int]) -> None:
        """Measures until it is done, or is cancelled: then it returns with what was measured.

        Raises:
            ClientError, KafkaError: records can't be read.
        """
        outcome = self.outcome
        where = [TopicPartition(outcome.topic, number) for number in partitions]
        try:
            ends = await self._consumer.end_offsets(*where)
            first = await self._consumer.beginning_offsets(*where)
            left = {at: ends[at] for at in where if ends[at] > first[at]}
            self.progress.restart()
            self.progress.total = min(sum(ends[at] - first[at] for at in left), self._records or 2**63)
            began = time.perf_counter()
            self._consumer.assign(left)
            for at in left:
                self._consumer.seek(at, first[at])
            while left and (self._records is None or outcome.records < self._records):
                polled = await self._path.poll(self._consumer, _POLL_MS)
                if polled is not None and polled.partition in left:
                    count = bisect_left(polled.offsets, left[polled.partition])  # what came later isn't measured
                    if self._records is not None:
                        count = min(count, self._records - outcome.records)
                    if count:
                        self._count(polled.records[:count], count, time.perf_counter() - began)
                for at in [*left]:  # the positions, as a log may end with what isn't a record
                    if (self._consumer.position(at) or 0) >= left[at]:
                        del left[at]
                        self._consumer.pause(at)
        except asyncio.CancelledError:
            outcome.interrupted = True

    def _count(self, records: Any, count: int, seconds: float) -> None:
        outcome = self.outcome
        size = size_of(records)
        outcome.records += count
        outcome.bytes += size
        outcome.seconds = seconds
        if outcome.first_s is None:
            outcome.first_s = seconds
        self.progress.position = outcome.records
        self.progress.advance(count, size)


def size_of(records: Any) -> int:
    """The bytes of keys and values: of a batch's columns, or of records."""
    if isinstance(records, list):
        return sum(len(each.key or b"") + len(each.value or b"") for each in records)
    import pyarrow.compute as pc

    return sum(pc.sum(pc.binary_length(records.column(name))).as_py() or 0 for name in ("key", "value"))
