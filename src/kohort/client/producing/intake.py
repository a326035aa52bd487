"""Takes records in: topics and their partitions, memory, and waiting for deliveries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

from kohort.client.backoff import Backoff
from kohort.client.cluster import Cluster
from kohort.client.errors import ClosedError, NotDeliveredError, RequestTimeoutError
from kohort.client.producing.accumulator import Accumulator
from kohort.client.producing.batch import PlainHeaders, ProducerBatch
from kohort.client.producing.batch_completer import BatchCompleter
from kohort.client.producing.delivery import all_done
from kohort.client.producing.partition_queue import PartitionQueue
from kohort.client.producing.partitioners import TopicRoutes
from kohort.client.producing.sender import Sender
from kohort.client.producing.settings import ProducerSettings
from kohort.client.producing.transaction_client import TransactionClient
from kohort.client.producing.transaction_manager import TransactionManager
from kohort.client.server_cluster_info import Changes
from kohort.client.time_limit import time_limit_at
from kohort.client.types import TopicInfo, TopicPartition
from kohort.plurals import several
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.records.batch import HEADER_SIZE
from kohort.protocol.records.rows import row_size


class Intake:
    """The producer between `Producer` and its sender."""

    def __init__(self, cluster: Cluster, settings: ProducerSettings, manager: TransactionManager) -> None:
        self._cluster = cluster
        self._settings = settings
        self._manager = manager
        self._random = Random()
        self._waiting: set[asyncio.Future[None]] = set()
        self._sender: Sender | None = None
        self.accumulator = Accumulator(settings)
        self.completer = BatchCompleter(self.accumulator, manager, settings, self._pause)
        self.transactions = TransactionClient(cluster, settings, manager)
        self.routes: dict[str, TopicRoutes] = {}

    def _pause(self, attempts: int) -> float:
        config = self._cluster.config
        backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, self._random)
        backoff.attempts = max(0, attempts - 1)
        return backoff.next()

    def start(self) -> None:
        """Starts the sender; the cluster is started."""
        self._sender = Sender(
            self._cluster,
            self.accumulator,
            self._manager,
            self._settings,
            self.completer,
            self.transactions,
            self._on_progress,
        )
        # After the sender's own callback, which sets the leaders.
        self._cluster.on_change(self._cluster_changed)

    async def close(self) -> None:
        """Gives up all batches, and ends the sender."""
        self.completer.drop_all(ClosedError("the producer was closed before the record was delivered"))
        self._on_progress()
        if self._sender is not None:
            await self._sender.close()

    @property
    def sender(self) -> Sender:
        """The sender.

        Raises:
            RuntimeError: the producer isn't started.
        """
        if self._sender is None:
            assert self._manager.send_error is not None
            raise self._manager.send_error
        return self._sender

    # Topics

    async def find_topic(self, topic: str) -> TopicRoutes:
        """Looks up the partitions of a topic.

        Raises:
            KafkaError: it doesn't exist within `max_block_ms`, or can't be written.
            ConnectionLostError: no broker responds.
        """
        sender = self.sender
        ms = self._settings.max_block_ms
        try:
            info = await self._cluster.topic(topic, timeout_ms=ms, create=self._settings.allow_auto_create_topics)
        except KafkaError as error:
            if error.code.retriable:
                raise KafkaError(error.code, f"topic {topic!r} isn't there after max_block_ms={ms}") from error
            raise
        routes = self.routes.get(topic)
        if routes is None:
            queues = self._queues(info)
            for queue in queues:
                sender.place(queue)
            routes = TopicRoutes(
                topic, queues, self._settings.partitioner, self._settings.batch_size, self._random
            )  # fmt: skip
            routes.refresh()
            self.routes[topic] = routes
        return routes

    def _queues(self, info: TopicInfo) -> list[PartitionQueue]:
        return [self.accumulator.queue(TopicPartition(info.name, number)) for number in sorted(info.partitions)]

    async def find_partition(self, routes: TopicRoutes, partition: int) -> None:
        """Refreshes metadata to find a partition.

        Raises:
            ValueError: it doesn't exist.
        """
        if partition >= 0:
            self._cluster.follow((routes.topic,))
            await self._cluster.refresh(timeout_ms=self._settings.max_block_ms)
        if not 0 <= partition < len(routes.queues):
            raise ValueError(
                f"topic {routes.topic} has {several(len(routes.queues), 'partition')}, so there is none with number "
                f"{partition}"
            )

    def _cluster_changed(self, changes: Changes) -> None:
        changed = changes.topics | {partition.topic for partition in changes.leaders}
        for topic, routes in self.routes.items():
            info = self._cluster.info.topics.get(topic)
            if info is not None and (topic in changed or changes.brokers):
                queues = self._queues(info)
                for queue in queues:
                    self.sender.place(queue)
                routes.queues = queues
                routes.refresh()

    # Memory

    def open_batch(self, queue: PartitionQueue) -> ProducerBatch:
        sender = self.sender
        self._manager.add(queue.target)
        batch = self.accumulator.open_batch(queue, sender.now())
        sender.wake(queue)
        return batch

    async def make_room(self, queue: PartitionQueue, size: int, deadline: float | None) -> float:
        """Seals a full batch; waits while memory is full. Returns the deadline (s), for the next call.

        Raises:
            RequestTimeoutError: the deadline has passed.
        """
        sender = self.sender
        loop = asyncio.get_running_loop()
        if deadline is None:
            deadline = loop.time() + self._settings.max_block_ms / 1000
        if queue.open is not None:
            queue.seal()
            sender.wake(queue)
        if self.accumulator.buffered + size + HEADER_SIZE <= self._settings.buffer_memory:
            await asyncio.sleep(0)  # lets other tasks run, such as the one that sends the sealed batch
            return deadline
        if loop.time() >= deadline:
            raise RequestTimeoutError(
                f"{queue.target}: buffer_memory={self._settings.buffer_memory} was full for "
                f"max_block_ms={self._settings.max_block_ms}: the brokers don't keep up, or can't be reached"
            )
        waiter = loop.create_future()
        self._waiting.add(waiter)
        self.accumulator.flushes += 1
        sender.wake_all()
        try:
            async with time_limit_at(deadline):
                await waiter
        except TimeoutError:
            pass  # the next call raises, unless there is room now
        finally:
            self.accumulator.flushes -= 1
            self._waiting.discard(waiter)
        return deadline

    def _on_progress(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    def check_size(self, key: bytes | None, value: bytes | None, headers: PlainHeaders) -> None:
        """Refuses a record that is too large for a request.

        Raises:
            KafkaError: MESSAGE_TOO_LARGE.
        """
        size = HEADER_SIZE + row_size(key, value, headers)
        for name in ("max_request_size", "buffer_memory"):
            most = getattr(self._settings, name)
            if size > most:
                raise KafkaError(
                    ErrorCode.MESSAGE_TOO_LARGE, f"the record takes up to {size} bytes, over {name}={most}"
                )

    # Delivering

    async def deliver_all(self) -> None:
        """Waits until all current records were delivered, or have failed. It may be cancelled."""
        if self._sender is None:
            return
        batches: Sequence[ProducerBatch] = list(self.accumulator.pending())
        self.accumulator.flushes += 1
        self._sender.wake_all()
        try:
            await all_done(batches)
        finally:
            self.accumulator.flushes -= 1

    def raise_losses(self, why: str | None = None) -> None:
        """Raises the failures since the last call that the user hasn't looked at.

        Raises:
            NotDeliveredError: there are some.
        """
        lost, cause = self.completer.take_losses()
        if lost:
            raise NotDeliveredError(lost, why or cause) from cause
