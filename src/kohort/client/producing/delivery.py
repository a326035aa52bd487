"""Deliveries: the outcome of a sent record, and of a sent table."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from kohort.client.errors import NotDeliveredError
from kohort.client.producing.batch import ProducerBatch
from kohort.client.types import RecordMetadata


class Delivery:
    """A sent record: await it for its `RecordMetadata`, or for the error that stopped it.

    It refers to the record's place in its batch; nothing else is made for a record. Awaiting it can be cancelled and
    started again without any effect on the record.
    """

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: ProducerBatch, index: int) -> None:
        self._batch = batch
        self._index = index

    def done(self) -> bool:
        """Whether the record was delivered, or has failed."""
        return self._batch.holder_of(self._index)[0].done

    def exception(self) -> Exception | None:
        """Returns why it wasn't delivered, None if it was.

        Raises:
            asyncio.InvalidStateError: it isn't done yet.
        """
        batch, index = self._batch.holder_of(self._index)
        if not batch.done:
            raise asyncio.InvalidStateError("the record is still on its way")
        if batch.error is not None:
            batch.seen.add(index)
        return batch.error

    def result(self) -> RecordMetadata:
        """Returns where it was written.

        Raises:
            asyncio.InvalidStateError: it isn't done yet.
            KafkaError, ClientError: it wasn't delivered.
        """
        if (error := self.exception()) is not None:
            raise without_traceback(error)
        batch, index = self._batch.holder_of(self._index)
        return batch.metadata(index)

    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None:
        """Calls `callback(delivery)` in the event loop once it is done; soon, if it is already."""
        loop = asyncio.get_running_loop()
        self._batch.watch(self._index, lambda: loop.call_soon(callback, self))

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        return self._outcome().__await__()

    async def _outcome(self) -> RecordMetadata:
        while not self.done():
            await _part_done(self._batch, self._index)
        return self.result()


class TablePart(NamedTuple):
    """Where rows of a table were written in a partition.

    Other producers' records may lie between them, if they took more than one batch. The offset is -1 with acks=0.
    """

    first_offset: int
    records: int


class TableDelivery:
    """A sent table: await it for a `TablePart` by partition."""

    __slots__ = ("_batches",)

    def __init__(self, batches: Sequence[ProducerBatch]) -> None:
        self._batches = batches

    def done(self) -> bool:
        """Whether every row was delivered, or has failed."""
        return all(part.done for batch in self._batches for part in _parts(batch))

    def result(self) -> dict[int, TablePart]:
        """Returns where the rows were written, by partition.

        Raises:
            asyncio.InvalidStateError: they aren't done yet.
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
        await all_done(self._batches)
        return self.result()


async def all_done(batches: Sequence[ProducerBatch]) -> None:
    """Waits until all records of the batches were delivered, or have failed."""
    for batch in batches:
        while (waiting := next((part for part in _parts(batch) if not part.done), None)) is not None:
            await _part_done(waiting, 0)


def _parts(batch: ProducerBatch) -> list[ProducerBatch]:
    """Returns the batches that hold the records of `batch`, which may have been split."""
    return [leaf for part in batch.parts for leaf in _parts(part)] if batch.parts else [batch]


async def _part_done(batch: ProducerBatch, index: int) -> None:
    waiter = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    batch.watch(index, wake)
    try:
        await waiter
    finally:
        batch.unwatch(index, wake)


def without_traceback(error: Exception) -> Exception:
    """Returns an error that is raised repeatedly, without earlier tracebacks: they would pile up on it."""
    error.__traceback__ = None
    return error
