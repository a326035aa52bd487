"""How long a record takes from who sends it to who reads it."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Final

from kohort.cli.client.errors import explain
from kohort.cli.data.progress import Progress
from kohort.cli.measuring.outcome import Outcome
from kohort.client.errors import ClientError
from kohort.client.types import TopicPartition
from kohort.protocol.errors import KafkaError

if TYPE_CHECKING:
    from kohort.client.consumer import Consumer
    from kohort.client.producer import Producer

LEAST_SIZE: Final = 16
"""Bytes of a value: whose it is, and its number."""
_LAST_S: Final = 10.0
_POLL_MS: Final = 100


class RoundTripMeasure:
    """Sends records, one after the other, and reads them in the same process: so there is one clock.

    A latency begins when a record is due by the rate, and ends when the consumer hands it out.

    Args:
        producer, consumer: started; the consumer without a group.
    """

    def __init__(
        self, producer: Producer, consumer: Consumer, topic: str, *, records: int, size: int, rate: float
    ) -> None:
        self.outcome = Outcome("e2e", topic)
        self.progress = Progress()
        self._producer = producer
        self._consumer = consumer
        self._records = records
        self._size = size
        self._rate = rate
        self._mark = os.urandom(8)
        self._due: dict[int, float] = {}
        self._began = 0.0

    async def run(self, partitions: list[int]) -> None:
        """Measures until all have come, or none comes any more; cancelled, it returns with what was measured.

        Raises:
            ClientError, KafkaError: records can't be read.
        """
        where = [TopicPartition(self.outcome.topic, number) for number in partitions]
        sending: asyncio.Task[None] | None = None
        try:
            ends = await self._consumer.end_offsets(*where)
            self._consumer.assign(where)
            for at in where:
                self._consumer.seek(at, ends[at])
            self.progress.restart()
            self.progress.total = self._records
            self._began = time.perf_counter()
            sending = asyncio.ensure_future(self._send_all())
            await self._read_all(sending)
        except asyncio.CancelledError:
            self.outcome.interrupted = True
        finally:
            if sending is not None:
                sending.cancel()
                await asyncio.wait([sending])
        if not self.outcome.interrupted:
            self.outcome.lost = len(self._due)

    async def _send_all(self) -> None:
        filler = os.urandom(self._size - LEAST_SIZE)
        try:
            for number in range(self._records):
                due = self._began + number / self._rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                self._due[number] = due
                await self._producer.send(self.outcome.topic, self._mark + number.to_bytes(8, "big") + filler)
            await self._producer.flush()
        except (ClientError, KafkaError) as error:
            self.outcome.problem = explain(error)

    async def _read_all(self, sending: asyncio.Task[None]) -> None:
        last: float | None = None
        while self.outcome.records < self._records:
            if sending.done():
                sending.result()  # raises what isn't the cluster's fault
            records = await self._consumer.poll(timeout_ms=_POLL_MS)
            now = time.perf_counter()
            for each in records:
                if each.value is not None and each.value[:8] == self._mark:
                    self._arrived(int.from_bytes(each.value[8:16], "big"), now)
            if not sending.done() or records:
                last = None
            elif last is None:
                last = now
            elif now - last > _LAST_S or self.outcome.problem is not None:
                return

    def _arrived(self, number: int, now: float) -> None:
        due = self._due.pop(number, None)
        if due is None:
            return  # a second time
        outcome = self.outcome
        outcome.latencies.add(now - due)
        outcome.records += 1
        outcome.bytes += self._size
        outcome.seconds = now - self._began
        self.progress.position = outcome.records
        self.progress.advance(1, self._size)
