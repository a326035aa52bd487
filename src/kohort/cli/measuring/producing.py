"""How fast records are taken, and how long that takes each."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from kohort.cli.client.errors import explain
from kohort.cli.data.progress import Progress
from kohort.cli.measuring.outcome import Outcome
from kohort.cli.measuring.payloads import block_records, blocks
from kohort.client.errors import ClientError, NotDeliveredError
from kohort.protocol.errors import KafkaError

if TYPE_CHECKING:
    from kohort.cli.data.deliveries import Deliveries, Delivery
    from kohort.cli.data.record_path import Block, RecordPath
    from kohort.client.producer import Producer

_LAST_MS: Final = 10_000
"""How long what has left may take to be acknowledged, once the measurement was stopped."""


class ProducingMeasure:
    """Sends records, as many as are wanted or as leave in some seconds.

    The latency of a record begins when it is handed to the producer, or with a rate when it was due, though the
    producer was late itself; and ends when all records that left with it are acknowledged.

    Args:
        producer: started.
        records: how many; None for as many as leave in `seconds`.
        size: bytes of a value; there are no keys.
        rate: records a second, at most.
    """

    def __init__(
        self,
        producer: Producer,
        topic: str,
        path: RecordPath,
        *,
        records: int | None,
        seconds: float | None,
        size: int,
        rate: float | None,
        partition: int | None = None,
    ) -> None:
        self.outcome = Outcome("produce", topic)
        self.progress = Progress()
        self._producer = producer
        self._records = records
        self._seconds = seconds
        self._size = size
        self._rate = rate
        self._partition = partition
        self._step = block_records(size, rate)
        self._blocks = blocks(path, size, self._step)
        self._waiting: set[asyncio.Task[None]] = set()
        self._began = 0.0

    async def run(self) -> None:
        """Measures until it is done, or fails, or is cancelled: then it returns with what was measured."""
        self.progress.restart()
        self.progress.total = None if self._records is None else self._records
        self._began = time.perf_counter()
        try:
            await self._send_all()
            await self._producer.flush()
        except asyncio.CancelledError:
            self.outcome.interrupted = True
        except (ClientError, KafkaError, ValueError) as error:
            self._fail(error)
        if self.outcome.interrupted or self.outcome.problem is not None:
            try:
                await self._producer.flush(timeout_ms=_LAST_MS)
            except (ClientError, KafkaError) as error:
                self._fail(error)
        if self._waiting:
            _, late = await asyncio.wait(self._waiting, timeout=_LAST_MS / 1000)
            for each in late:
                each.cancel()

    async def _send_all(self) -> None:
        sent, number = 0, 0
        until = None if self._seconds is None else self._began + self._seconds
        while self._records is None or sent < self._records:
            count = self._step if self._records is None else min(self._step, self._records - sent)
            began = time.perf_counter()
            if self._rate is not None:
                due = self._began + sent / self._rate
                await asyncio.sleep(due - began if due > began else 0)
                began = due
            if (until is not None and began >= until) or self.outcome.problem is not None:
                return
            await self._send(self._blocks[number % len(self._blocks)][:count], began)
            sent += count
            number += 1
            await asyncio.sleep(0)

    async def _send(self, block: Block, began: float) -> None:
        deliveries: Deliveries = deque()
        sending = asyncio.ensure_future(block.send(self._producer, self.outcome.topic, self._partition, deliveries))
        try:
            await asyncio.shield(sending)
        except asyncio.CancelledError:
            await asyncio.wait([sending], timeout=_LAST_MS / 1000)  # so that all that leave are counted
            raise
        finally:
            for delivery, count in deliveries:
                task = asyncio.ensure_future(self._settle(delivery, count, began))
                self._waiting.add(task)
                task.add_done_callback(self._waiting.discard)

    async def _settle(self, delivery: Delivery, count: int, began: float) -> None:
        try:
            await delivery
        except NotDeliveredError as error:
            lost = sum(error.records.values())
            self.outcome.lost += lost
            count -= lost
            self._fail(error)
        if not count:
            return
        now = time.perf_counter()
        outcome = self.outcome
        outcome.latencies.add(now - began, count)
        outcome.records += count
        outcome.bytes += count * self._size
        outcome.seconds = now - self._began
        self.progress.position = outcome.records
        self.progress.advance(count, count * self._size)

    def _fail(self, error: Exception) -> None:
        if self.outcome.problem is None:
            known = isinstance(error, ClientError | KafkaError)
            self.outcome.problem = explain(error) if known else str(error)  # type: ignore[arg-type]
