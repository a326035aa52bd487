"""Acquires a queue's records, and acknowledges them."""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Protocol

import pyarrow as pa

from kohort.client.config import ClientConfig
from kohort.client.errors import ClosedError, RequestTimeoutError, SharedRecordError
from kohort.client.share_consumer import ShareConsumer
from kohort.client.sharing.acknowledgements import AcknowledgeType
from kohort.client.types import TopicPartition
from kohort.spark.queues.compiling import CompiledQueue
from kohort.spark.queues.counts import QueueCounts
from kohort.spark.queues.settlement import Settlement

log = logging.getLogger(__name__)

_POLL_MS: Final = 500
_CLOSE_MS: Final = 10_000


class Acquiring(Protocol):
    """Where a worker gets records, and says what became of them."""

    async def acquire(self, most: int) -> pa.Table | None:
        """So many records at most that are locked for this worker, as of `ShareConsumer.batches`.

        None: there were none for a while.
        """

    async def acknowledge(self, records: pa.Table, settlement: Settlement) -> None:
        """Says what became of records, and waits until brokers know, or won't."""


class QueueConsumer:
    """A share consumer that takes an epoch's records at a time. Locks are renewed while the job works on them.

    Args:
        renewed: whether they can be: the group may forbid it.
    """

    def __init__(
        self, client: ClientConfig, group_id: str, queue: CompiledQueue, counts: QueueCounts, *, renewed: bool = True
    ) -> None:
        settings = queue.settings
        self._topic = queue.topic
        self._counts = counts
        self._consumer = ShareConsumer(
            client,
            group_id=group_id,
            share_acknowledgement_mode="explicit",
            share_acquire_mode=settings.acquire_mode,
            max_poll_records=settings.max_records,
            lock_renewal_ms=settings.processing_timeout_ms if renewed else 0,
            on_acknowledged=counts.acknowledged,
        )
        self._renewed = renewed
        if not renewed:
            self._warn_of_locks("the group's share.renew.acknowledge.enable is off")

    async def start(self) -> None:
        """Joins the group.

        Raises:
            KafkaError, ClientError: there is no broker, or the topic may not be read.
        """
        await self._consumer.start()
        self._consumer.subscribe(self._topic)

    async def acquire(self, most: int) -> pa.Table | None:
        """See `Acquiring`.

        Raises:
            KafkaError: a broker refuses.
        """
        batches: list[pa.RecordBatch] = []
        rows = 0
        while rows < most and (not batches or self._consumer.buffered()):
            try:
                batch = await self._consumer.poll_batch(_POLL_MS, most - rows)
            except SharedRecordError as error:
                log.warning("queue %s: %s", self._topic, error)
                continue
            except ClosedError:
                break
            if batch is None:
                break
            batches.append(batch)
            rows += batch.num_rows
        if not batches:
            return None
        records = pa.Table.from_batches(batches)
        self._counts.handed_out(records)
        if self._renewed and self._consumer.renews_locks() is False:
            self._renewed = False
            self._warn_of_locks("a broker is older than Apache Kafka 4.2, and may lock more than max_records")
        return records

    async def acknowledge(self, records: pa.Table, settlement: Settlement) -> None:
        """See `Acquiring`. What doesn't count is counted as lost."""
        for kind in (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT):
            rows = settlement.rows(kind)
            if len(rows):
                of_kind = records.select(["topic", "partition", "offset"]).take(pa.array(rows)).combine_chunks()
                self._consumer.acknowledge(of_kind.to_batches()[0], kind)
        try:
            errors = await self._consumer.commit()
        except RequestTimeoutError as late:
            log.warning("queue %s: %s; they are tried on", self._topic, late)
            return
        for at, error in errors.items():
            if error is not None:
                _log_lost(at, error)

    async def close(self) -> None:
        """Leaves the group; brokers release what isn't acknowledged."""
        await asyncio.shield(self._consumer.close(_CLOSE_MS))

    def _warn_of_locks(self, why: str) -> None:
        log.warning(
            "queue %s: locks aren't renewed, since %s: a job has to end before they do. Take fewer records "
            "(max_records), or lock them for longer (lock_ms)",
            self._topic, why,
        )  # fmt: skip


def _log_lost(at: TopicPartition, error: Exception) -> None:
    log.warning("%s: some acknowledgements don't count, so these records are handed out again: %s", at, error)
