"""Reads the records of a page, with a consumer that is in no group and commits nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Final, NamedTuple, TypeVar

from kohort.client.admin import Admin
from kohort.client.config import ClientConfig
from kohort.client.consumer import Consumer
from kohort.client.types import Record, TopicPartition
from kohort.console.record_decoding import RecordDecoder
from kohort.console.record_filter import RecordFilter
from kohort.console.record_paging import page_of_records
from kohort.console.record_ranges import ChoiceError, OffsetRange, RecordChoice, Where, ranges

AT_ONCE: Final = 4
"""Pages that are read at the same time; others wait."""

WITHIN_S: Final = 10.0
"""Time to read a page; what has come by then is shown."""

MOST_BYTES: Final = 32 * 1024 * 1024
"""Size of a page's keys, values and headers: there, too, it ends with what has come."""

MOST_LOOKED: Final = 20_000
"""Records that are looked at for a page that has a filter."""

_POLL_MS: Final = 200
_POLL_RECORDS: Final = 1_000
_BYTES: Final = 4 * 1024 * 1024

T = TypeVar("T")


class FoundRecords(NamedTuple):
    """The records of a page.

    Attributes:
        records: in the order of their times, and of their offsets within a partition.
        partitions: how many partitions the topic has.
        complete: whether all that was to be read came in time, and within `MOST_BYTES`.
        looked: how many records were looked at.
        positions: where the next page goes on, by partition; None where there is nothing more, or it can't be said.
    """

    records: list[Record]
    partitions: int
    complete: bool
    looked: int
    positions: dict[int, int] | None


class RecordReader:
    """Reads records of a cluster.

    Args:
        config: the cluster.
        admin: a client of it, which is started.
        decoder: decodes what is searched.
    """

    def __init__(self, config: ClientConfig, admin: Admin, decoder: RecordDecoder | None = None) -> None:
        self._config = config
        self._admin = admin
        self.decoder = decoder or RecordDecoder()
        self._gate = asyncio.Semaphore(AT_ONCE)
        # Threads of its own bound the work also when pages are left: what has begun goes on until it ends.
        self._threads = ThreadPoolExecutor(AT_ONCE, "records")

    def close(self) -> None:
        """Does nothing in threads any more. May be called twice."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """What takes a while, such as to decode values, in one of `AT_ONCE` threads, for who asks here."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, work)

    async def read(self, topic: str, choice: RecordChoice, wanted: RecordFilter | None = None) -> FoundRecords:
        """The records of a topic that are chosen, and that a filter wants.

        Raises:
            ChoiceError: the topic doesn't have the partition.
            ClientError, KafkaError: the cluster doesn't answer, or refuses.
        """
        numbers = (await self._admin.topics.describe(topic))[topic].partitions
        if choice.partition is not None and choice.partition not in numbers:
            raise ChoiceError(f"{topic} has no partition {choice.partition}, but {len(numbers)}, from 0")
        partitions = [TopicPartition(topic, at) for at in numbers if choice.partition in (None, at)]
        ends = await self._admin.offsets.ends(partitions)
        times = None
        if choice.where is Where.TIME and not choice.positions:
            found = await self._admin.offsets.list(dict.fromkeys(partitions, choice.value))
            times = {at: each.offset for at, each in found.items()}
        window = max(1, MOST_LOOKED // max(1, len(partitions))) if wanted else None
        wide = ranges(choice, ends, times, window)
        async with self._gate:
            search = _Search(topic, wide, choice, wanted or RecordFilter(), self.decoder)
            await self._read(search)
        records, positions = page_of_records(choice, wide, search.reached, search.found)
        return FoundRecords(records, len(numbers), search.complete, search.looked, positions)

    async def _read(self, search: _Search) -> None:
        """Reads until the search has enough, at most for so long."""
        if not search.left:
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + WITHIN_S
        consumer = Consumer(
            self._config,
            enable_auto_commit=False,
            auto_offset_reset="earliest",  # of a partition whose records were deleted meanwhile
            fetch_max_bytes=_BYTES,
            queued_max_bytes=2 * _BYTES,
            allow_auto_create_topics=False,
        )
        async with consumer:
            consumer.assign(search.left)
            for at in search.left:
                consumer.seek(at, search.reached[at])
            while search.goes_on() and loop.time() < deadline:
                records = await consumer.poll(_POLL_RECORDS, _POLL_MS)
                done = {*search.left}
                if search.decodes:  # which takes a while, and may ask a registry
                    await self.in_thread(partial(search.take, records, lambda: loop.time() >= deadline))
                else:
                    search.take(records)
                for at in search.left:
                    position = consumer.position(at)  # also past records that were compacted away
                    if position is not None:
                        search.passed(at, position)
                search.settle()
                for at in done - search.left:
                    consumer.pause(at)


class _Search:
    """Records of a page, as they come.

    Attributes:
        found: those that are wanted, by partition.
        reached: the offset up to which each partition was looked at.
        left: partitions of which more is to be looked at.
        looked: how many records were looked at.
        decodes: whether keys or values have to be decoded.
    """

    def __init__(
        self,
        topic: str,
        wide: Mapping[TopicPartition, OffsetRange],
        choice: RecordChoice,
        wanted: RecordFilter,
        decoder: RecordDecoder,
    ) -> None:
        self._topic, self._wide, self._wanted, self._decoder = topic, wide, wanted, decoder
        self._backwards = choice.where is Where.END
        self._most = choice.count
        self._size = 0
        self._over = False
        self.decodes = wanted.decodes
        self.found: dict[TopicPartition, list[Record]] = {at: [] for at in wide}
        self.reached = {at: each.start for at, each in wide.items()}
        self.left = set(wide)
        self.looked = 0

    def goes_on(self) -> bool:
        """Whether there is more to look at, within the limits."""
        bounded = self._backwards or not self._wanted or self.looked < MOST_LOOKED
        return bool(self.left) and self._size < MOST_BYTES and bounded

    @property
    def complete(self) -> bool:
        """Whether all was looked at that was to be, but for what a filter's limit leaves to the next page."""
        return not self._over and (not self.left or (self._size < MOST_BYTES and not self.goes_on()))

    def take(self, records: Sequence[Record], late: Callable[[], bool] = lambda: False) -> None:
        """Takes what was read, in the order in which it came, until it is late."""
        for record in records:
            if self._size >= MOST_BYTES or late():
                self._over = True
                return
            at = TopicPartition(record.topic, record.partition)
            if at not in self.left or record.offset >= self._wide[at].stop or self._full(at):
                continue
            self.looked += 1
            self.reached[at] = record.offset + 1
            if self._wants(record):
                self.found[at].append(record)
                self._size += _size(record)

    def _wants(self, record: Record) -> bool:
        if not self._wanted.has_header(record.headers):
            return False
        if not self.decodes:
            return True
        key = self._decoder.key(self._topic, record.key)
        return self._wanted(key, self._decoder.value(self._topic, record.key, record.value), record.headers)

    def _full(self, at: TopicPartition) -> bool:
        return len(self.found[at]) >= self._most and not self._backwards

    def passed(self, at: TopicPartition, position: int) -> None:
        """Takes in that a partition has no records before an offset but those that were taken."""
        if not self._over and not self._full(at):
            self.reached[at] = max(self.reached[at], min(position, self._wide[at].stop))

    def settle(self) -> None:
        """Notes which partitions are done."""
        self.left = {at for at in self.left if not self._full(at) and self.reached[at] < self._wide[at].stop}


def _size(record: Record) -> int:
    parts = [record.key, record.value, *(value for _, value in record.headers)]
    return sum(len(each) for each in parts if each is not None)
