"""Records on their way to the user: one by one, in lists or as Arrow batches; and how far the user has come with them.

The loop over records is Python's own over a list: nothing is counted for a record. How many of them were given is
read off the list's iterator when somebody wants to know; to take records back, as for a pause in the middle of the
list, the list is cut short.
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
from kohort.client.consuming.answers import Piece
from kohort.client.consuming.decoding import WORTH_COLUMNS, DecodedPiece, Deserializer
from kohort.client.consuming.loops import Claim, Loop
from kohort.client.consuming.partitions import ConsumedPartition, ConsumedPartitions
from kohort.client.errors import ClientError, ClosedError, NoOffsetError, RecordError
from kohort.client.time_limit import time_limit
from kohort.client.types import Record

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Delivery"]

T = TypeVar("T")

_SLICE: Final = 1024
"""Records that are made at once; between two slices the event loop gets its turn."""

_MUCH: Final = 1024 * 1024
"""Bytes that were given from which on it's worth a second of CPU to load the module that decodes columns."""

_MANY: Final = 20_000
"""Records in a piece from which on columns of it are worth waiting for that."""

_RETRY_MS: Final = 1000
"""How long a partition isn't asked for after the user was told what is wrong with it."""


@dataclass(slots=True, eq=False)
class _Given:
    """What the user is working on.

    Attributes:
        partition: where it comes from.
        piece: what it's a part of.
        decoded: the piece's records.
        before, after: the offsets of its first record, and after it.
        records: the records; empty for a batch, which is given as a whole.
        iterator: over them; the user's loop is where it is.
        in_hands: how many of those that were given last the user works on: one in a loop, a list after `poll`, none
            once they ask for more.
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
        """The offset of the first record in the user's hands; they aren't consumed before more is asked for."""
        if not self.in_hands:
            return self.position
        given = len(self.records) - self.left
        return self.records[max(0, given - self.in_hands)].offset if given else self.before


class Delivery:
    """Gives what is queued to one task at a time.

    Args:
        partitions: where it is queued.
        key_deserializer, value_deserializer: see `Consumer`.
        asked: called when the user asks for more; raises what there is to raise.
        room_made: called when there's room for more.
        settled: called when a partition's queue may have run empty.
    """

    def __init__(
        self,
        partitions: ConsumedPartitions,
        key_deserializer: Deserializer | None,
        value_deserializer: Deserializer | None,
        asked: Callable[[], None],
        room_made: Callable[[], None],
        settled: Callable[[ConsumedPartition], None],
    ) -> None:
        self._partitions = partitions
        self._deserializers = key_deserializer, value_deserializer
        self._asked = asked
        self._room_made = room_made
        self._settled = settled
        self._news = asyncio.Event()
        self._free = asyncio.Event()  # the user isn't busy with a record
        self._free.set()
        self._given: _Given | None = None
        self._decoded: tuple[Piece, DecodedPiece] | None = None
        self._seen = 0  # bytes that were given, up to where it matters
        self._holds = 0
        self._waiting = False
        self._claim: Claim | None = None
        self._gifts = 0
        self._progress = 0, 0
        self._heard = asyncio.get_running_loop().time() * 1000
        self.closed = False

    # What others tell.

    def arrived(self) -> None:
        """There's something to give, to raise, or the end."""
        self._news.set()

    def close(self) -> None:
        """End all loops, at their next step; nobody waits for the user any more."""
        self.take_back(None)
        self.closed = True
        given, self._given = self._given, None
        if given is not None:  # everything that was given counts
            given.partition.position = given.partition.consumed = given.position
        self._free.set()
        self._news.set()

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Give nothing meanwhile; the records that the user doesn't have yet are taken back."""
        self._holds += 1
        self.take_back(None)
        try:
            yield
        finally:
            self._holds -= 1
            self._news.set()

    async def user_free(self, timeout_ms: float) -> None:
        """Wait until the user asks for the next record, has left the loop, or the time is over."""
        try:
            async with time_limit(timeout_ms / 1000):
                await self._free.wait()
        except TimeoutError:
            pass

    def take_back(self, partition: ConsumedPartition | None) -> None:
        """Records of a partition, or of whichever, that were made but not given go back to the queue."""
        given = self._given
        if given is None or (partition is not None and given.partition is not partition):
            return
        self.sync()
        left = given.left
        if left:
            given.after = given.position
            del given.records[len(given.records) - left :]
            given.decoded.row -= left

    def forget(self, partition: ConsumedPartition) -> None:
        """The partition is read elsewhere from now on, or not at all: what the user has of it counts no more."""
        self.take_back(partition)
        if self._given is not None and self._given.partition is partition:
            self._given = None

    def sync(self) -> None:
        """Bring the partition up to date that the user works on."""
        given = self._given
        if given is not None:
            given.partition.position = given.position
            given.partition.position_epoch = given.piece.leader_epoch
            given.partition.consumed = given.consumed

    def heard(self) -> float:
        """When the user was last seen to ask for a record, in ms of the loop's clock; now, if they wait for one."""
        now = asyncio.get_running_loop().time() * 1000
        # What is taken from the user, or forgotten, is no sign of life.
        given = self._progress[1] if self._given is None else len(self._given.records) - self._given.left
        if self._waiting or (self._gifts, given) != self._progress:
            self._progress = self._gifts, given
            self._heard = now
        return self._heard

    # What the user does.

    def records(self) -> AsyncIterator[Record]:
        """Record by record, until `close`."""
        return self._loop(self._records)

    def batches(self, max_bytes: int | None) -> AsyncIterator[pa.RecordBatch]:
        """Arrow batch by Arrow batch, until `close`."""
        return self._loop(lambda claim: self._batches(claim, max_bytes))

    async def poll(self, max_records: int, timeout_ms: float) -> list[Record]:
        """A few records at once; none if none come in time."""
        with self._reading(Claim()):
            await self._turn()
            if not await _within(timeout_ms, self._next_slice(max_records)):
                return []
            assert self._given is not None
            records = list(islice(self._given.iterator, max_records))
            self._given.in_hands = len(records)
            return records

    async def poll_batch(self, timeout_ms: float) -> pa.RecordBatch | None:
        """An Arrow batch; None if there is none in time."""
        with self._reading(Claim()):
            await self._turn()
            return await _within(timeout_ms, self._next_batch(None))

    def _loop(self, start: Callable[[Claim], AsyncGenerator[T, None]]) -> AsyncIterator[T]:
        if self.closed:
            raise ClosedError("the consumer is closed")
        return Loop(start)

    async def _records(self, claim: Claim) -> AsyncGenerator[Record, None]:
        with self._reading(claim):
            while await self._next_slice(_SLICE):
                assert self._given is not None
                self._given.in_hands = 1
                for record in self._given.iterator:
                    yield record
                await self._turn()

    async def _batches(self, claim: Claim, max_bytes: int | None) -> AsyncGenerator[pa.RecordBatch, None]:
        with self._reading(claim):
            while (batch := await self._next_batch(max_bytes)) is not None:
                yield batch
                await self._turn()

    @contextmanager
    def _reading(self, claim: Claim) -> Iterator[None]:
        """Let nobody else read meanwhile."""
        other = self._claim
        if other is not None and other.task is not claim.task and other.holds():
            raise ClientError(
                f"another task ({other.task.get_name()}) reads from this consumer; "
                "let one task read and hand records on, or give each task a consumer of its own"
            )
        self._claim = claim
        try:
            yield
        except (Exception, asyncio.CancelledError):
            if claim.loop is not None and (loop := claim.loop()) is not None:
                loop.renew()
            raise
        finally:
            if self._claim is claim:
                self._claim = None
                if claim.loop is not None:
                    self._free.set()  # whoever has left the loop isn't waited for

    async def _turn(self) -> None:
        """The user asks for more: they are done with what they have. The event loop gets its turn first."""
        if self._given is not None:
            self._given.in_hands = 0
        await asyncio.sleep(0)

    # Pieces, opened one after another.

    async def _next_slice(self, most: int) -> bool:
        """Have `_given` hold records; False at the end."""
        if self._given is not None and self._given.left:
            self._asked()
            self._free.clear()
            return True
        while True:
            opened = await self._next_piece(columns=False)
            if opened is None:
                return False
            partition, piece, decoded = opened
            try:
                records = decoded.take(most)
            except RecordError as error:
                self._partitions.stop_at(partition, decoded.next_to_give, error)
                continue
            after = records[-1].offset + 1 if decoded.left else decoded.next_offset
            self._give(_Given(partition, piece, decoded, records[0].offset, after, records, iter(records)))
            return True

    async def _next_batch(self, max_bytes: int | None) -> pa.RecordBatch | None:
        """The next Arrow batch; None at the end."""
        self.take_back(None)
        opened = await self._next_piece(columns=True)
        if opened is None:
            return None
        partition, piece, decoded = opened
        before = decoded.next_to_give
        most = decoded.left
        if max_bytes is not None:
            most = max(1, min(most, decoded.count * max_bytes // max(1, piece.size)))
        batch = decoded.take_batch(most)
        self._give(_Given(partition, piece, decoded, before, decoded.next_to_give))
        return batch

    def _give(self, given: _Given) -> None:
        self._given = given
        self._gifts += 1
        self._free.clear()

    async def _next_piece(self, *, columns: bool) -> tuple[ConsumedPartition, Piece, DecodedPiece] | None:
        """The piece whose turn it is, with something left in it; None at the end.

        With this the user is done with everything that was given.
        """
        self._finish()
        self._free.set()
        self._waiting = True
        try:
            while not self.closed:
                self._news.clear()
                self._asked()
                partition = None if self._holds else self._partitions.next_with_news()
                if partition is None:
                    await self._news.wait()
                elif not partition.queue:
                    self._raise_fault(partition)
                else:
                    piece = partition.queue[0]
                    decoded = await self._open(partition, piece, columns=columns)
                    if decoded is not None and decoded.left:
                        return partition, piece, decoded
                    if decoded is not None:
                        self._used_up(partition, piece, decoded)
            return None
        finally:
            self._waiting = False

    async def _open(self, partition: ConsumedPartition, piece: Piece, *, columns: bool) -> DecodedPiece | None:
        """The piece, decoded; None if it has to be waited for, or is corrupt: then look again."""
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
        self._room_made()
        return decoded

    def _finish(self) -> None:
        """All that was given is consumed."""
        given, self._given = self._given, None
        if given is None:
            return
        partition = given.partition
        partition.position = partition.consumed = given.position
        partition.position_epoch = given.piece.leader_epoch
        if not given.decoded.left:
            self._used_up(partition, given.piece, given.decoded)

    def _used_up(self, partition: ConsumedPartition, piece: Piece, decoded: DecodedPiece) -> None:
        partition.position = partition.consumed = decoded.next_offset
        partition.position_epoch = piece.leader_epoch
        if self._seen < _MUCH:
            self._seen += sum(header.size for header in piece.headers)
            if self._seen >= _MUCH:
                load_columns()  # not before, or the user would wait for it with the first record
        self._partitions.done_with(partition, piece, decoded.rest)
        self._decoded = None
        self._room_made()
        self._settled(partition)

    def _raise_fault(self, partition: ConsumedPartition) -> None:
        """Tell the user. What only a seek cures stays; the rest is tried again."""
        fault = partition.fault
        assert fault is not None
        if not isinstance(fault, RecordError | NoOffsetError):
            self._partitions.clear(partition)
            partition.retry_at = asyncio.get_running_loop().time() * 1000 + _RETRY_MS
            self._room_made()
        self._partitions.later(partition)
        raise fault


async def _within(timeout_ms: float, coming: Coroutine[Any, Any, T]) -> T | None:
    try:
        async with time_limit(timeout_ms / 1000):
            return await coming
    except TimeoutError:
        return None
