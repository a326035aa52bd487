"""Reads the records of a page, with a consumer that is in no group and commits nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from kohort.client.admin import Admin
from kohort.client.config import ClientConfig
from kohort.client.consumer import Consumer
from kohort.client.types import Record, TopicPartition
from kohort.console.record_ranges import ChoiceError, OffsetRange, RecordChoice, Where, ranges

AT_ONCE: Final = 4
"""Pages that are read at the same time; others wait."""

WITHIN_S: Final = 10.0
"""Time to read a page; what has come by then is shown."""

MOST_BYTES: Final = 32 * 1024 * 1024
"""Size of a page's keys, values and headers: there, too, it ends with what has come."""

_POLL_MS: Final = 200
_BYTES: Final = 4 * 1024 * 1024


class FoundRecords(NamedTuple):
    """The records of a page.

    Attributes:
        records: in the order of their times, and of their offsets within a partition.
        partitions: how many partitions the topic has.
        complete: whether all that was to be read came in time, and within `MOST_BYTES`.
    """

    records: list[Record]
    partitions: int
    complete: bool


class RecordReader:
    """Reads records of a cluster.

    Args:
        config: the cluster.
        admin: a client of it, which is started.
    """

    def __init__(self, config: ClientConfig, admin: Admin) -> None:
        self._config = config
        self._admin = admin
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def read(self, topic: str, choice: RecordChoice) -> FoundRecords:
        """The records of a topic that are wanted.

        Raises:
            ChoiceError: the topic doesn't have the partition.
            ClientError, KafkaError: the cluster doesn't answer, or refuses.
        """
        numbers = (await self._admin.topics.describe(topic))[topic].partitions
        if choice.partition is not None and choice.partition not in numbers:
            raise ChoiceError(f"{topic} has no partition {choice.partition}, but {len(numbers)}, from 0")
        wanted = [TopicPartition(topic, at) for at in numbers if choice.partition in (None, at)]
        ends = await self._admin.offsets.ends(wanted)
        times = None
        if choice.where is Where.TIME:
            found = await self._admin.offsets.list(dict.fromkeys(wanted, choice.value))
            times = {at: each.offset for at, each in found.items()}
        async with self._gate:
            records, complete = await self._read(ranges(choice, ends, times), choice.count)
        # A stable sort, so that those of a partition whose times go back keep the order of their offsets there.
        records.sort(key=lambda record: record.timestamp)
        chosen = records[-choice.count :] if choice.where is Where.END else records[: choice.count]
        return FoundRecords(chosen, len(numbers), complete)

    async def _read(self, wanted: Mapping[TopicPartition, OffsetRange], most: int) -> tuple[list[Record], bool]:
        """Records of these ranges, so many of each at most; and whether all of them came in time."""
        found: dict[TopicPartition, list[Record]] = {at: [] for at in wanted}
        left = set(wanted)
        if not left:
            return [], True
        deadline = asyncio.get_running_loop().time() + WITHIN_S
        size = 0
        consumer = Consumer(
            self._config,
            enable_auto_commit=False,
            auto_offset_reset="earliest",  # of a partition whose records were deleted meanwhile
            fetch_max_bytes=_BYTES,
            queued_max_bytes=2 * _BYTES,
            allow_auto_create_topics=False,
        )
        async with consumer:
            consumer.assign(left)
            for at, each in wanted.items():
                consumer.seek(at, each.start)
            while left and size < MOST_BYTES and asyncio.get_running_loop().time() < deadline:
                for record in await consumer.poll(most, _POLL_MS):
                    at = TopicPartition(record.topic, record.partition)
                    if record.offset < wanted[at].stop and len(found[at]) < most:
                        found[at].append(record)
                        size += _size(record)
                for at in [*left]:
                    position = consumer.position(at)  # also past records that were compacted away
                    if len(found[at]) >= most or (position is not None and position >= wanted[at].stop):
                        left.discard(at)
                        consumer.pause(at)
        return [record for records in found.values() for record in records], not left


def _size(record: Record) -> int:
    parts = [record.key, record.value, *(value for _, value in record.headers)]
    return sum(len(each) for each in parts if each is not None)
