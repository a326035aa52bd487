"""All batches of a producer: their memory, and which are due for a broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kohort.client.producing.batch import ProducerBatch
from kohort.client.producing.partition_queue import PartitionQueue
from kohort.client.producing.settings import ProducerSettings
from kohort.client.producing.transaction_manager import TransactionManager
from kohort.client.types import TopicPartition


class Due(NamedTuple):
    """The batches to send to a broker now, and when more are due (ms; None: when something changes)."""

    batches: list[ProducerBatch]
    next_at: float | None


class Accumulator:
    """The queues of all partitions, by leader. Pure: times are given, in ms.

    Attributes:
        queues: by partition.
        buffered: bytes of all batches that aren't done.
        flushes: calls that flush or wait for memory; while there are any, batches don't linger.
    """

    def __init__(self, settings: ProducerSettings) -> None:
        self._settings = settings
        self._orders = 0
        self._active: dict[int | None, dict[TopicPartition, PartitionQueue]] = {}
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self.buffered = 0
        self.flushes = 0

    def queue(self, target: TopicPartition) -> PartitionQueue:
        """Returns the queue of a partition, and makes it at the first call."""
        queue = self.queues.get(target)
        if queue is None:
            queue = self.queues[target] = PartitionQueue(
                target,
                idempotent=self._settings.enable_idempotence,
                most_in_flight=self._settings.max_in_flight_requests_per_connection,
            )
        return queue

    def move(self, queue: PartitionQueue, node: int | None) -> None:
        """The partition has another leader."""
        if node != queue.node:
            if self._active.get(queue.node, {}).pop(queue.target, None) is not None:
                self._active.setdefault(node, {})[queue.target] = queue
            queue.node = node

    def activate(self, queue: PartitionQueue) -> None:
        self._active.setdefault(queue.node, {})[queue.target] = queue

    def has_active(self, node: int) -> bool:
        """Whether there is anything to send to a broker."""
        return any(queue.has_more for queue in self._active.get(node, {}).values())

    def open_batch(self, queue: PartitionQueue, now: float) -> ProducerBatch:
        """Returns a new open batch for the partition's records; the one before is sealed."""
        queue.seal()
        batch = queue.open = self._batch(queue.target, now)
        self.buffered += batch.size
        self.activate(queue)
        return batch

    def add_encoded(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Queues an encoded batch, after the others."""
        queue.seal()
        queue.waiting.append(batch)
        self.buffered += batch.size
        self.activate(queue)

    def encoded_batch(self, target: TopicPartition, data: memoryview, count: int, now: float) -> ProducerBatch:
        batch = self._batch(target, now)
        batch.encoded, batch.size, batch.count = data, len(data), count
        return batch

    def _batch(self, target: TopicPartition, now: float) -> ProducerBatch:
        self._orders += 1
        return ProducerBatch(target, (self._orders,), now)

    def release(self, batch: ProducerBatch) -> None:
        """Frees the memory of a batch that is done."""
        self.buffered -= batch.size
        batch.size = 0

    def due(
        self,
        node: int | None,
        now: float,
        manager: TransactionManager,
        may_send: Callable[[PartitionQueue], bool] = lambda queue: True,
    ) -> Due:
        """Returns the batches for one request to a broker: one for each partition, `max_request_size` in all.

        The batches are in flight from then on. Partitions take turns.

        Args:
            now: ms.
            manager: has the producer's id and epoch, for sequences.
            may_send: whether a partition's batches may be sent; called when there are some. It may raise the epoch, and
                give batches up.
        """
        active = self._active.get(node)
        if not active:
            return Due([], None)
        batches: list[ProducerBatch] = []
        room = self._settings.max_request_size
        next_at: float | None = None
        for target, queue in list(active.items()):
            if not queue.has_more:
                del active[target]
                continue
            at = self._due_at(queue, now)
            if at is None:
                continue
            if at > now:
                next_at = at if next_at is None else min(next_at, at)
                continue
            if not may_send(queue):
                continue
            if not queue.has_more:
                continue
            if not queue.retries and not queue.waiting:
                queue.seal()
            head = queue.retries[0] if queue.retries else queue.waiting[0]
            if batches and head.size > room:
                next_at = now
                continue
            batch = queue.take(now, manager.identity)
            if batch is not None:
                batches.append(batch)
                room -= head.size
                del active[target]
                active[target] = queue
        return Due(batches, next_at)

    def _due_at(self, queue: PartitionQueue, now: float) -> float | None:
        """Returns when the queue's first batch may be sent (ms); None: not before a response."""
        if queue.blocked(now):
            return queue.retry_at if queue.retry_at > now else None
        if queue.retries or queue.waiting or self.flushes or queue.open is None:
            return now
        return queue.open.created + self._settings.linger_ms

    def pending(self) -> Iterator[ProducerBatch]:
        """All batches that aren't done."""
        for queue in self.queues.values():
            for batch in queue.batches():
                if not batch.done:
                    yield batch

    def undelivered(self) -> Counter[str]:
        """Returns how many records aren't delivered, by topic."""
        records: Counter[str] = Counter()
        for batch in self.pending():
            records[batch.target.topic] += batch.count
        return records

    def expire(self, now: float) -> list[ProducerBatch]:
        """Takes out and returns the batches older than the delivery timeout."""
        deadline = now - self._settings.delivery_timeout_ms
        return [batch for queue in self.queues.values() if not queue.idle for batch in queue.expire(deadline)]
