"""Hands fetched records to the user: one by one, in lists or as Arrow batches; and knows which of them are consumed.

The loop over records is Python's own over a list: nothing is counted for a record. The list's iterator says how many
of them were given; to take records back, as for a pause in the middle of the list, the list is cut short.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kohort.client.column_codec import columns_if_loaded, columns_loaded, load_columns
from kohort.client.consuming.completed_fetch import Piece
from kohort.client.consuming.consumed_partitions import ConsumedPartition, ConsumedPartitions
from kohort.client.consuming.decoding import WORTH_COLUMNS, DecodedPiece, Deserializer
from kohort.client.consuming.read_loop import OneReader, Reader, ReadLoop
from kohort.client.errors import ClosedError, NoOffsetError, RecordError
from kohort.client.time_limit import time_limit
from kohort.client.types import Record

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

_SLICE: Final = 1024
"""Records that are made at once; the event loop runs between two slices."""

_MUCH: Final = 1024 * 1024
"""Bytes given to the user after which it's worth a second of CPU to load the module that decodes columns."""

_MANY: Final = 20_000
"""Records in a piece that make it worth waiting for that module."""

_RETRY_MS: Final = 1000
"""How long a partition isn't fetched after its error was raised to the user."""


@dataclass(slots=True, eq=False)
class _Current:
    """The records that the user is working on.

    Attributes:
        piece, decoded: the piece that they are a part of, and its records.
        before, after: the offsets of the first record, and after the last.
        records: the records; empty for a batch, which is given all at once.
        iterator: over them, shared with the user's loop.
        in_hands: how many of the last given records the user works on: one in a loop, a list after `poll`, none once
            the user asks for more.
    """

    partition: ConsumedPartition
    piece: Piece
    decoded: DecodedPiece
    before: int
    after: int
    records: list[Record] = field(default_factory=list)
    iterator: Iterator[Record] = field(default_factory=lambda: iter(()))
    in_hands: int = 1

    @property
    def left(self) -> int:
        return length_hint(self.iterator)

    @property
    def position(self) -> int:
        """The offset after the last record that was given."""
        given = len(self.records) - self.left
        if given == len(self.records):
            return self.after
        return self.records[given - 1].offset + 1 if given else self.before

    @property
    def consumed(self) -> int:
        """The offset of the first record in the user's hands; those aren't consumed before the user asks for more."""
        if not self.in_hands:
            return self.position
        given = len(self.records) - self.left
        return self.records[max(0, given - self.in_hands)].offset if given else self.before


class FetchCollector:
    """Gives queued records to one task at a time.

    Args:
        key_deserializer, value_deserializer: see `Consumer`.
        on_poll: called when the user asks for more; raises the consumer's errors.
        on_room: called when there's room to fetch more.
        on_piece_done: called when a partition's queue may have run empty.
    """

    def __init__(
        self,
        partitions: ConsumedPartitions,
        key_deserializer: Deserializer | None,
        value_deserializer: Deserializer | None,
        on_poll: Callable[[], None],
        on_room: Callable[[], None],
        on_piece_done: Callable[[ConsumedPartition], None],
    ) -> None:
        self._partitions = partitions
        self._deserializers = key_deserializer, value_deserializer
        self._on_poll = on_poll
        self._on_room = on_room
        self._on_piece_done = on_piece_done
        self._wakeup = asyncio.Event()
        self._free = asyncio.Event()  # the user isn't busy with a record
        self._free.set()
        self._current: _Current | None = None
        self._decoded: tuple[Piece, DecodedPiece] | None = None
        self._bytes_given = 0  # up to `_MUCH`
        self._holds = 0
        self._waiting = False
        self._reader = OneReader()
        self._handouts = 0
        self._progress = 0, 0
        self._last_poll = asyncio.get_running_loop().time() * 1000
        self.closed = False

    # For the consumer's other parts.

    def wake(self) -> None:
        """There are records, an error, or the end."""
        self._wakeup.set()

    def close(self) -> None:
        """Ends all loops at their next step; `wait_for_user` returns."""
        self.take_back(None)
        self.closed = True
        current, self._current = self._current, None
        if current is not None:  # all the given records are consumed
            current.partition.position = current.partition.consumed = current.position
        self._free.set()
        self._wakeup.set()

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Gives no records meanwhile; those that the user doesn't have yet are taken back."""
        self._holds += 1
        self.take_back(None)
        try:
            yield
        finally:
            self._holds -= 1
            self._wakeup.set()

    async def wait_for_user(self, timeout_ms: float) -> None:
        """Waits until the user asks for the next record, has left the loop, or the time is over."""
        try:
            async with time_limit(timeout_ms / 1000):
                await self._free.wait()
        except TimeoutError:
            pass

    def take_back(self, partition: ConsumedPartition | None) -> None:
        """Puts records of a partition (None: of any) that were made but not given back into the queue."""
        current = self._current
        if current is None or (partition is not None and current.partition is not partition):
            return
        self.sync()
        left = current.left
        if left:
            current.after = current.position
            del current.records[len(current.records) - left :]
            current.decoded.row -= left

    def forget(self, partition: ConsumedPartition) -> None:
        """The position moves, or the partition goes: what the user has of it isn't consumed any more."""
        self.take_back(partition)
        if self._current is not None and self._current.partition is partition:
            self._current = None

    def sync(self) -> None:
        """Updates position and consumed offset of the partition that the user works on."""
        current = self._current
        if current is not None:
            current.partition.position = current.position
            current.partition.position_epoch = current.piece.leader_epoch
            current.partition.consumed = current.consumed

    def last_poll(self) -> float:
        """Returns when the user last asked for a record, in ms of the loop's clock; now, if they wait for one."""
        now = asyncio.get_running_loop().time() * 1000
        # Records taken back or forgotten don't count as a poll.
        given = self._progress[1] if self._current is None else len(self._current.records) - self._current.left
        if self._waiting or (self._handouts, given) != self._progress:
            self._progress = self._handouts, given
            self._last_poll = now
        return self._last_poll

    # For the user.

    def records(self) -> AsyncIterator[Record]:
        return self._loop(self._records)

    def batches(self, max_bytes: int | None) -> AsyncIterator[pa.RecordBatch]:
        return self._loop(lambda reader: self._batches(reader, max_bytes))

    async def poll(self, max_records: int, timeout_ms: float) -> list[Record]:
        with self._reading(Reader()):
            await self._consume_and_yield()
            if not await _within(timeout_ms, self._next_slice(max_records)):
                return []
            assert self._current is not None
            records = list(islice(self._current.iterator, max_records))
            self._current.in_hands = len(records)
            return records

    async def poll_batch(self, timeout_ms: float) -> pa.RecordBatch | None:
        with self._reading(Reader()):
            await self._consume_and_yield()
            return await _within(timeout_ms, self._next_batch(None))

    def _loop(self, start: Callable[[Reader], AsyncGenerator[T, None]]) -> AsyncIterator[T]:
        if self.closed:
            raise ClosedError("the consumer is closed")
        return ReadLoop(start)

    async def _records(self, reader: Reader) -> AsyncGenerator[Record, None]:
        with self._reading(reader):
            while await self._next_slice(_SLICE):
                assert self._current is not None
                self._current.in_hands = 1
                for record in self._current.iterator:
                    yield record
                await self._consume_and_yield()

    async def _batches(self, reader: Reader, max_bytes: int | None) -> AsyncGenerator[pa.RecordBatch, None]:
        with self._reading(reader):
            while (batch := await self._next_batch(max_bytes)) is not None:
                yield batch
                await self._consume_and_yield()

    @contextmanager
    def _reading(self, reader: Reader) -> Iterator[None]:
        """Refuses other readers meanwhile."""
        try:
            with self._reader.reading(reader):
                yield
        finally:
            if reader.loop is not None and not self._reader.active():
                self._free.set()  # a user who has left the loop isn't waited for

    async def _consume_and_yield(self) -> None:
        """The user asks for more: the records in hands are consumed. Lets the event loop run first."""
        if self._current is not None:
            self._current.in_hands = 0
        await asyncio.sleep(0)

    # Pieces, decoded one after another.

    async def _next_slice(self, most: int) -> bool:
        """Fills `_current` with records; False at the end."""
        if self._current is not None and self._current.left:
            self._on_poll()
            self._free.clear()
            return True
        while True:
            found = await self._next_piece(columns=False)
            if found is None:
                return False
            partition, piece, decoded = found
            try:
                records = decoded.take(most)
            except RecordError as error:
                self._partitions.stop_at(partition, decoded.next_to_give, error)
                continue
            after = records[-1].offset + 1 if decoded.left else decoded.next_offset
            self._give(_Current(partition, piece, decoded, records[0].offset, after, records, iter(records)))
            return True

    async def _next_batch(self, max_bytes: int | None) -> pa.RecordBatch | None:
        """The next Arrow batch; None at the end."""
        self.take_back(None)
        found = await self._next_piece(columns=True)
        if found is None:
            return None
        partition, piece, decoded = found
        before = decoded.next_to_give
        most = decoded.left
        if max_bytes is not None:
            most = max(1, min(most, decoded.count * max_bytes // max(1, piece.size)))
        batch = decoded.take_batch(most)
        self._give(_Current(partition, piece, decoded, before, decoded.next_to_give))
        return batch

    def _give(self, current: _Current) -> None:
        self._current = current
        self._handouts += 1
        self._free.clear()

    async def _next_piece(self, *, columns: bool) -> tuple[ConsumedPartition, Piece, DecodedPiece] | None:
        """Returns the next piece that has records left; None at the end. All that was given is consumed then."""
        self._finish()
        self._free.set()
        self._waiting = True
        try:
            while not self.closed:
                self._wakeup.clear()
                self._on_poll()
                partition = None if self._holds else self._partitions.next_ready()
                if partition is None:
                    await self._wakeup.wait()
                elif not partition.queue:
                    self._raise_error(partition)
                else:
                    piece = partition.queue[0]
                    decoded = await self._decode(partition, piece, columns=columns)
                    if decoded is not None and decoded.left:
                        return partition, piece, decoded
                    if decoded is not None:
                        self._finish_piece(partition, piece, decoded)
            return None
        finally:
            self._waiting = False

    async def _decode(self, partition: ConsumedPartition, piece: Piece, *, columns: bool) -> DecodedPiece | None:
        """Returns the piece, decoded; None after waiting for the codec, or if it's corrupt: the caller looks again."""
        if self._decoded is not None and self._decoded[0] is piece:
            return self._decoded[1]
        module = columns_if_loaded()
        count = sum(header.record_count for header in piece.headers)
        if columns and module is None and count > _MANY:
            await columns_loaded()
            return None
        if not columns and count < WORTH_COLUMNS:
            module = None
        at = partition.topic_partition
        begin = max(piece.offset, partition.position)
        try:
            decoded = DecodedPiece(at, piece, begin, module, *self._deserializers)
        except RecordError as error:
            self._partitions.stop_at(partition, error.offset, error)
            return None
        self._decoded = piece, decoded
        self._partitions.open(partition)
        self._on_room()
        return decoded

    def _finish(self) -> None:
        current, self._current = self._current, None
        if current is None:
            return
        partition = current.partition
        partition.position = partition.consumed = current.position
        partition.position_epoch = current.piece.leader_epoch
        if not current.decoded.left:
            self._finish_piece(partition, current.piece, current.decoded)

    def _finish_piece(self, partition: ConsumedPartition, piece: Piece, decoded: DecodedPiece) -> None:
        partition.position = partition.consumed = decoded.next_offset
        partition.position_epoch = piece.leader_epoch
        if self._bytes_given < _MUCH:
            self._bytes_given += sum(header.size for header in piece.headers)
            if self._bytes_given >= _MUCH:
                load_columns()  # not earlier, or the first record would wait for it
        self._partitions.piece_done(partition, piece, decoded.rest)
        self._decoded = None
        self._on_room()
        self._on_piece_done(partition)

    def _raise_error(self, partition: ConsumedPartition) -> None:
        """Raises a partition's error. Errors that only a seek mends stay; after others, it's fetched again."""
        error = partition.error
        assert error is not None
        if not isinstance(error, RecordError | NoOffsetError):
            self._partitions.clear(partition)
            partition.retry_at = asyncio.get_running_loop().time() * 1000 + _RETRY_MS
            self._on_room()
        self._partitions.rotate(partition)
        raise error


async def _within(timeout_ms: float, coming: Coroutine[Any, Any, T]) -> T | None:
    try:
        async with time_limit(timeout_ms / 1000):
            return await coming
    except TimeoutError:
        return None
