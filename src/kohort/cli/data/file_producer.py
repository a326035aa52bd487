"""The loop of `kohort produce`: sends the records of files, a block at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from kohort.cli.data.deliveries import Deliveries
from kohort.cli.data.pipes import Interrupter
from kohort.cli.data.progress import Progress
from kohort.cli.data.record_path import Block
from kohort.cli.data.source import Source, open_source
from kohort.client.errors import NotDeliveredError

if TYPE_CHECKING:
    from kohort.client.producer import Producer

_STEPS: Final = 20
"""Times a second that records are sent, where their rate is limited."""

Reader = Callable[[Source], Iterator[Block]]


class FileProducer:
    """Sends the records of files.

    Args:
        producer: started.
        topic, partition: the target; without a partition, the partitioner decides for each record.
        read: gives the records of a source, block by block.
        null: the bytes that mean null.
        rate: records a second at most.
        begun: awaited when the first records have been handed to the producer, which knows the topic then.

    Attributes:
        delivered: number of acknowledged records.
    """

    def __init__(
        self,
        producer: Producer,
        topic: str,
        read: Reader,
        *,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
        null: bytes | None = None,
        rate: float | None = None,
        begun: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.delivered = 0
        self.progress = Progress()
        self.interactive = False
        self._producer = producer
        self._topic = topic
        self._read = read
        self._partition = partition
        self._headers = headers
        self._null = null
        self._rate = rate
        self._begun = begun
        self._due = 0.0
        self._deliveries: Deliveries = deque()

    async def send_files(self, paths: Sequence[str], interrupter: Interrupter) -> None:
        """Sends the records of all files, one file after another.

        Raises:
            DataError: a file is broken; what comes before that was passed to the producer.
            KafkaError, ClientError: records can't be sent or delivered.
        """
        for path in paths:
            with open_source(path, interrupter) as source:
                self.interactive = source.interactive
                self.progress.total = source.size
                async with aclosing(_read_ahead(self._read(source), interrupter)) as blocks:
                    async for block in blocks:
                        self.progress.position = source.position
                        await self._send(block)

    async def flush(self) -> None:
        """Waits until all records are delivered, or have failed.

        Raises:
            NotDeliveredError: some were not delivered.
        """
        await self._producer.flush()
        failure: Exception | None = None
        while self._deliveries:
            try:
                await self._await_first_delivery()
            except NotDeliveredError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    async def _send(self, block: Block) -> None:
        if self._null is not None:
            block = block.with_nulls(self._null)
        if self._headers:
            block = block.with_headers(self._headers)
        step = max(1, int(self._rate / _STEPS)) if self._rate else max(1, len(block))
        for start in range(0, len(block), step):
            await self._send_rows(block[start : start + step])

    async def _send_rows(self, rows: Block) -> None:
        if self._rate:
            now = asyncio.get_running_loop().time()
            self._due = max(self._due, now) + len(rows) / self._rate
            await asyncio.sleep(self._due - len(rows) / self._rate - now)
        sending = asyncio.ensure_future(rows.send(self._producer, self._topic, self._partition, self._deliveries))
        cancelled = None
        try:
            await asyncio.shield(sending)
        except asyncio.CancelledError as error:
            cancelled = error
            await asyncio.wait([sending])  # the block is sent to its end, to be counted
        sending.result()
        self.progress.advance(len(rows), rows.size())
        if cancelled is not None:
            raise cancelled
        if self._begun is not None:
            begun, self._begun = self._begun, None
            await begun()
        while self._deliveries and self._deliveries[0][0].done():
            await self._await_first_delivery()

    async def _await_first_delivery(self) -> None:
        delivery, rows = self._deliveries.popleft()
        try:
            await delivery
        except NotDeliveredError as error:
            self.delivered += rows - sum(error.records.values())
            raise
        self.delivered += rows


async def _read_ahead(blocks: Iterator[Block], interrupter: Interrupter) -> AsyncGenerator[Block, None]:
    """The blocks, each read in a thread while the one before it is being sent."""

    def following() -> Any:
        return next(blocks, None)

    reading = asyncio.ensure_future(interrupter.run(following))
    try:
        while (block := await reading) is not None:
            reading = asyncio.ensure_future(interrupter.run(following))
            yield block
    finally:
        if not reading.done():
            reading.cancel()
        await asyncio.wait([reading])
        if not reading.cancelled():
            reading.exception()
