"""Gives acquired records to the user: one by one, in lists or as Arrow batches; in the implicit mode, accepts them.

The loop over records is Python's own over a list: nothing is counted for a record. The list's iterator says how many of
them were given; all but the one in the user's hands are accepted as one range, when something asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, Final, TypeVar

from kohort.client.column_codec import columns_if_loaded, columns_loaded
from kohort.client.consuming.decoding import WORTH_COLUMNS, Deserializer
from kohort.client.consuming.read_loop import OneReader, Reader, ReadLoop
from kohort.client.errors import ClosedError, SharedRecordError
from kohort.client.sharing.acknowledgements import GAP, AcknowledgeType, OffsetSpan
from kohort.client.sharing.acquired import AcquiredPiece, AcquiredRange, DecodedRecords, without_first_batch
from kohort.client.sharing.shared_partitions import Buffered, SharedPartition, SharedPartitions
from kohort.client.time_limit import time_limit
from kohort.client.types import ShareRecord
from kohort.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

_SLICE: Final = 1024
"""Records that are made at once; the event loop runs between two slices."""

_MANY: Final = 20_000
"""Records in a piece that make it worth waiting for the module that decodes columns."""

_NOT_LOCKED: Final = KafkaError(
    ErrorCode.INVALID_RECORD_STATE, "the lock ended, or the leader moved, before it was acknowledged"
)


@dataclass(slots=True, eq=False)
class _Slice:
    """Records that the user works on.

    Attributes:
        records: with the shared iterator; a batch has none, and is given all at once.
        span: offsets of the first and the last.
        in_hands: how many of the last given ones aren't done yet.
        done: how many are accepted.
    """

    partition: SharedPartition
    span: OffsetSpan
    records: list[ShareRecord] = field(default_factory=list)
    iterator: Iterator[ShareRecord] = field(default_factory=lambda: iter(()))
    in_hands: int = 1
    done: int = 0

    @property
    def left(self) -> int:
        return length_hint(self.iterator)


class Delivery:
    """Gives buffered records to one task at a time.

    Args:
        implicit: whether given records are accepted when the user asks for more.
        on_poll: called when the user asks for more; raises the consumer's errors.
        on_need: called when the user waits for records, or there's room for more.
    """

    def __init__(
        self,
        partitions: SharedPartitions,
        key_deserializer: Deserializer | None,
        value_deserializer: Deserializer | None,
        *,
        implicit: bool,
        on_poll: Callable[[], None],
        on_need: Callable[[], None],
    ) -> None:
        self._partitions = partitions
        self._deserializers = key_deserializer, value_deserializer
        self._implicit = implicit
        self._on_poll = on_poll
        self._on_need = on_need
        self._wakeup = asyncio.Event()
        self._decoded: tuple[SharedPartition, DecodedRecords] | None = None
        self._current: _Slice | None = None
        self._reader = OneReader()
        self._progress = 0, 0
        self._handouts = 0
        self._polled_at = self._now()
        self.waiting = False
        self.closed = False

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time() * 1000

    # For the consumer's other parts.

    def wake(self) -> None:
        """There are records, an error, or the end."""
        self._wakeup.set()

    @property
    def reading(self) -> bool:
        """Whether a user is in a loop, or waits for records."""
        return self.waiting or self._reader.active()

    @property
    def buffered(self) -> bool:
        """Whether there are records that the user hasn't got."""
        current, decoded = self._current, self._decoded
        return (
            bool(self._partitions.undelivered.total())
            or (current is not None and current.left > 0)
            or (decoded is not None and decoded[1].left > 0)
        )

    @property
    def unaccepted(self) -> bool:
        """Whether `sync` may have to accept something later."""
        return self._implicit and self._current is not None

    def close(self) -> None:
        """Ends all loops at their next step. What the user has in hands isn't accepted."""
        self.sync()
        self.closed = True
        if self._current is not None and (left := self._current.left):
            del self._current.records[-left:]  # a loop that is suspended over them gives no more of them
        self._current = self._decoded = None
        self._wakeup.set()

    def last_poll(self) -> float:
        """Returns when the user last asked for a record; now, if they wait for one."""
        given = 0 if self._current is None else len(self._current.records) - self._current.left
        if self.waiting or (self._handouts, given) != self._progress:
            self._progress = self._handouts, given
            self._polled_at = self._now()
        return self._polled_at

    def sync(self, *, all_given: bool = False) -> None:
        """In the implicit mode, accepts what was given, but for what is in the user's hands unless `all_given`."""
        current = self._current
        if current is None or not self._implicit:
            return
        in_hands = 0 if all_given else current.in_hands
        if not current.records:
            if not in_hands and not current.done:
                current.done = 1
                self._settle(current.partition, current.span, AcknowledgeType.ACCEPT)
            return
        done = len(current.records) - current.left - in_hands
        if done > current.done:
            first = current.span.first if not current.done else current.records[current.done].offset
            self._settle(current.partition, OffsetSpan(first, current.records[done - 1].offset), AcknowledgeType.ACCEPT)
            current.done = done

    def _settle(self, partition: SharedPartition, span: OffsetSpan, kind: AcknowledgeType) -> None:
        lost = partition.book.acknowledge_rest(*span, kind, self._now())
        self._partitions.refuse(partition.at, lost, kind, _NOT_LOCKED)

    def retract(self, partition: SharedPartition, *, first_deliveries: bool = False) -> list[OffsetSpan]:
        """Takes back what was decoded but not given; returns its offsets.

        Args:
            first_deliveries: not what was delivered before (`SharedPartitions.release_buffered` says why).
        """
        spans = []
        current = self._current
        if current is not None and current.partition is partition and (left := current.left):
            rest = current.records[len(current.records) - left :]
            if not first_deliveries or rest[0].delivery_count == 1:  # the same for all records of a slice
                self.sync()
                spans.append(OffsetSpan(rest[0].offset, rest[-1].offset))
                del current.records[len(current.records) - left :]
        if self._decoded is not None and self._decoded[0] is partition:
            decoded = self._decoded[1]
            if not first_deliveries or decoded.first_delivery:
                self._decoded = None
                if (offset := decoded.next_offset()) is not None:
                    spans.append(OffsetSpan(offset, decoded.ranges[-1].last))
                if decoded.rest is not None:
                    spans.extend(OffsetSpan(first, last) for first, last, _ in decoded.rest.ranges)
        return spans

    # For the user.

    def records(self) -> AsyncIterator[ShareRecord]:
        """As of `ShareConsumer.__aiter__`."""
        return self._loop(self._records)

    def batches(self, max_records: int) -> AsyncIterator[pa.RecordBatch]:
        """As of `ShareConsumer.batches`."""
        return self._loop(lambda reader: self._batches(reader, max_records))

    async def poll(self, max_records: int, timeout_ms: float) -> list[ShareRecord]:
        """As of `ShareConsumer.poll`."""
        with self._reader.reading(Reader()):
            self._ask_for_more()
            await asyncio.sleep(0)
            try:
                async with time_limit(timeout_ms / 1000):
                    found = await self._next_slice(max_records)
            except TimeoutError:
                return []
            if not found:
                return []
            assert self._current is not None
            records = list(islice(self._current.iterator, max_records))
            self._current.in_hands = len(records)
            return records

    async def poll_batch(self, max_records: int, timeout_ms: float) -> pa.RecordBatch | None:
        """As of `ShareConsumer.poll_batch`."""
        with self._reader.reading(Reader()):
            self._ask_for_more()
            await asyncio.sleep(0)
            try:
                async with time_limit(timeout_ms / 1000):
                    return await self._next_batch(max_records)
            except TimeoutError:
                return None

    def _loop(self, start: Callable[[Reader], AsyncGenerator[T, None]]) -> AsyncIterator[T]:
        if self.closed:
            raise ClosedError("the consumer is closed")
        return ReadLoop(start)

    async def _records(self, reader: Reader) -> AsyncGenerator[ShareRecord, None]:
        with self._reader.reading(reader):
            while await self._next_slice(_SLICE):
                assert self._current is not None
                self._current.in_hands = 1
                for record in self._current.iterator:
                    yield record
                self._ask_for_more()
                await asyncio.sleep(0)

    async def _batches(self, reader: Reader, max_records: int) -> AsyncGenerator[pa.RecordBatch, None]:
        with self._reader.reading(reader):
            while (batch := await self._next_batch(max_records)) is not None:
                yield batch
                self._ask_for_more()
                await asyncio.sleep(0)

    def _ask_for_more(self) -> None:
        if self._current is not None:
            self._current.in_hands = 0
            self.sync()
            if not self._current.left:
                self._current = None
        self._on_need()

    async def _next_slice(self, most: int) -> bool:
        """Fills `_current` with records; False at the end."""
        if self._current is not None and self._current.left:
            self._on_poll()
            return True
        decoded = await self._next_decoded(columns=False)
        if decoded is None:
            return False
        partition, source = decoded
        try:
            records = source.take(most)
        except SharedRecordError as error:
            if self._implicit:
                span = OffsetSpan(error.first_offset, error.last_offset)
                self._settle(partition, span, AcknowledgeType.RELEASE)
            raise
        self._give(_Slice(partition, OffsetSpan(records[0].offset, records[-1].offset), records, iter(records)))
        return True

    async def _next_batch(self, most: int) -> pa.RecordBatch | None:
        """The next Arrow batch; None at the end."""
        self._release_rest()
        decoded = await self._next_decoded(columns=True)
        if decoded is None:
            return None
        partition, source = decoded
        batch, span = source.take_batch(most)
        self._give(_Slice(partition, span))
        return batch

    def _release_rest(self) -> None:
        """Releases the records that a loop left undelivered when the user turned to batches."""
        current = self._current
        if current is not None and (left := current.left):
            rest = current.records[-left:]
            del current.records[-left:]
            self._settle(current.partition, OffsetSpan(rest[0].offset, rest[-1].offset), AcknowledgeType.RELEASE)
            self._current = None

    def _give(self, current: _Slice) -> None:
        self._current = current
        self._handouts += 1
        self._on_need()

    async def _next_decoded(self, *, columns: bool) -> tuple[SharedPartition, DecodedRecords] | None:
        """Returns a piece that has records left; None at the end."""
        try:
            while not self.closed:
                self._wakeup.clear()
                self._on_poll()
                if self._decoded is not None and self._decoded[1].left:
                    return self._decoded
                self._finish_decoded()
                buffered = self._partitions.next()
                if buffered is not None:
                    await self._decode(buffered, columns=columns)
                    continue
                self.waiting = True
                self._on_need()
                await self._wakeup.wait()
            return None
        finally:
            self.waiting = False

    def _finish_decoded(self) -> None:
        if self._decoded is not None:
            partition, decoded = self._decoded
            self._decoded = None
            if decoded.rest is not None:
                self._partitions.put_back(Buffered(partition, decoded.rest))

    async def _decode(self, buffered: Buffered, *, columns: bool) -> None:
        partition, acquired = buffered
        acquired = self._still_locked(partition, acquired)
        if not acquired.ranges:
            return
        count = sum(header.record_count for header in acquired.piece.headers)
        module = columns_if_loaded()
        if columns and module is None and count > _MANY:
            self._partitions.put_back(buffered)
            await columns_loaded()
            return
        if not columns and count < WORTH_COLUMNS:
            module = None
        try:
            decoded = DecodedRecords(partition.at, acquired, module, *self._deserializers)
        except SharedRecordError:
            corrupt, rest = without_first_batch(acquired)
            for first, last, _ in corrupt:
                self._settle(partition, OffsetSpan(first, last), AcknowledgeType.REJECT)
            if rest is not None:
                self._partitions.put_back(Buffered(partition, rest))
            raise
        for gap in decoded.gaps:
            partition.book.acknowledge_rest(*gap, GAP, self._now())
        self._decoded = partition, decoded

    def _still_locked(self, partition: SharedPartition, acquired: AcquiredPiece) -> AcquiredPiece:
        """Returns a piece without the ranges whose lock has ended while they waited."""
        now, book = self._now(), partition.book
        kept: list[AcquiredRange] = []
        for each in acquired.ranges:
            if book.expired(each.first, each.last, now):
                book.drop(each.first, each.last)
            else:
                kept.append(each)
        return acquired if len(kept) == len(acquired.ranges) else AcquiredPiece(acquired.piece, kept)
