"""What becomes of what was sent: for a record, and for a table."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from kohort.client.errors import NotDeliveredError
from kohort.client.producing.batch import ProducerBatch
from kohort.client.types import RecordMetadata

__all__ = ["Delivery", "TableDelivery", "TablePart", "settled"]


class Delivery:
    """A record's way into the log: await it for its `RecordMetadata`, or for the error that stopped it.

    It is two references into the batch that the record is in; nothing else is made for a record, and one that nobody
    awaits costs nothing more. Awaiting it can be cancelled, and begun again, without doing anything to the record.
    """

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: ProducerBatch, index: int) -> None:
        self._batch = batch
        self._index = index

    def done(self) -> bool:
        """Whether it is known what became of the record."""
        return self._batch.holder_of(self._index)[0].done

    def exception(self) -> Exception | None:
        """Why it wasn't delivered, None if it was.

        Raises:
            asyncio.InvalidStateError: that isn't known yet.
        """
        batch, index = self._batch.holder_of(self._index)
        if not batch.done:
            raise asyncio.InvalidStateError("the record is still on its way")
        if batch.error is not None:
            batch.seen.add(index)
        return batch.error

    def result(self) -> RecordMetadata:
        """Where it was written.

        Raises:
            asyncio.InvalidStateError: that isn't known yet.
            KafkaError, ClientError: it wasn't delivered.
        """
        if (error := self.exception()) is not None:
            raise _fresh(error)
        batch, index = self._batch.holder_of(self._index)
        return batch.metadata(index)

    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None:
        """Have `callback(delivery)` called in the event loop once it is known; soon, if it is already."""
        loop = asyncio.get_running_loop()
        self._batch.watch(self._index, lambda: loop.call_soon(callback, self))

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        return self._outcome().__await__()

    async def _outcome(self) -> RecordMetadata:
        while not self.done():
            await _watched(self._batch, self._index)
        return self.result()


class TablePart(NamedTuple):
    """Where rows of a table were written in a partition.

    Other producers' records may lie between them, if they took more than one batch. The offset is -1 if nobody was
    asked to acknowledge them.
    """

    first_offset: int
    records: int


class TableDelivery:
    """The way of a table's rows into the log: await it for a `TablePart` by partition."""

    __slots__ = ("_batches",)

    def __init__(self, batches: Sequence[ProducerBatch]) -> None:
        self._batches = batches

    def done(self) -> bool:
        """Whether it is known what became of every row."""
        return all(part.done for batch in self._batches for part in _parts(batch))

    def result(self) -> dict[int, TablePart]:
        """Where the rows were written, by partition.

        Raises:
            asyncio.InvalidStateError: that isn't known yet.
            NotDeliveredError: rows weren't; the first error is its `__cause__`.
        """
        if not self.done():
            raise asyncio.InvalidStateError("rows are still on their way")
        parts = [part for batch in self._batches for part in _parts(batch)]
        failed = [part for part in parts if part.error is not None]
        if failed:
            lost: Counter[str] = Counter()
            for part in failed:
                lost[part.target.topic] += part.count
                part.seen.update(range(part.count))
            raise NotDeliveredError(lost, failed[0].error) from failed[0].error
        out: dict[int, TablePart] = {}
        for part in parts:
            before = out.get(part.target.partition)
            first = part.base_offset if before is None else min(before.first_offset, part.base_offset)
            out[part.target.partition] = TablePart(first, part.count + (before.records if before else 0))
        return out

    def __await__(self) -> Generator[Any, None, dict[int, TablePart]]:
        return self._outcome().__await__()

    async def _outcome(self) -> dict[int, TablePart]:
        await settled(self._batches)
        return self.result()


async def settled(batches: Sequence[ProducerBatch]) -> None:
    """Wait until it is known what became of all records of some batches."""
    for batch in batches:
        while (waiting := next((part for part in _parts(batch) if not part.done), None)) is not None:
            await _watched(waiting, 0)


def _parts(batch: ProducerBatch) -> list[ProducerBatch]:
    """The batches that hold the records of `batch` by now."""
    return [leaf for part in batch.parts for leaf in _parts(part)] if batch.parts else [batch]


async def _watched(batch: ProducerBatch, index: int) -> None:
    waiter = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    batch.watch(index, wake)
    try:
        await waiter
    finally:
        batch.unwatch(index, wake)


def _fresh(error: Exception) -> Exception:
    """The error of a batch, for one of its records: tracebacks must not pile up on the one that they share."""
    error.__traceback__ = None
    return error
