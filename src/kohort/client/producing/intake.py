"""Where records come in: topics and their partitions, memory, and what must be delivered before something goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

from kohort.client.backoff import Backoff
from kohort.client.cluster import Cluster
from kohort.client.errors import ClosedError, NotDeliveredError, RequestTimeoutError
from kohort.client.producing.accumulator import Accumulator
from kohort.client.producing.answers import AnswerJudge
from kohort.client.producing.batch import PlainHeaders, ProducerBatch
from kohort.client.producing.delivery import settled
from kohort.client.producing.partition_queue import PartitionQueue
from kohort.client.producing.partitioners import TopicRoutes
from kohort.client.producing.sender import Sender
from kohort.client.producing.settings import ProducerSettings
from kohort.client.producing.transaction_client import TransactionClient
from kohort.client.producing.transactions import ProducerState
from kohort.client.server_cluster_info import Changes
from kohort.client.time_limit import time_limit_at
from kohort.client.types import TopicInfo, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.records.batch import HEADER_SIZE
from kohort.protocol.records.rows import row_size

__all__ = ["Intake"]


class Intake:
    """What stands between the public face of a producer and its sender.

    Attributes:
        accumulator, judge, transactions: the producer's parts.
        routes: by topic.
    """

    def __init__(self, cluster: Cluster, settings: ProducerSettings, state: ProducerState) -> None:
        self._cluster = cluster
        self._settings = settings
        self._state = state
        self._random = Random()
        self._waiting: set[asyncio.Future[None]] = set()
        self._sender: Sender | None = None
        self.accumulator = Accumulator(settings)
        self.judge = AnswerJudge(self.accumulator, state, settings, self._pause)
        self.transactions = TransactionClient(cluster, settings, state)
        self.routes: dict[str, TopicRoutes] = {}

    def _pause(self, attempts: int) -> float:
        config = self._cluster.config
        backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, self._random)
        backoff.attempts = max(0, attempts - 1)
        return backoff.next()

    def start(self) -> None:
        """Begin to send; the cluster is started."""
        self._sender = Sender(
            self._cluster,
            self.accumulator,
            self._state,
            self._settings,
            self.judge,
            self.transactions,
            self._progressed,
        )
        # After the sender, which knows the leaders then.
        self._cluster.on_change(self._cluster_changed)

    async def close(self) -> None:
        """Give up what there is, and end the sender."""
        self.judge.drop_all(ClosedError("the producer was closed before the record was delivered"))
        self._progressed()
        if self._sender is not None:
            await self._sender.close()

    @property
    def sender(self) -> Sender:
        """The sender.

        Raises:
            RuntimeError: there is none yet.
        """
        if self._sender is None:
            assert self._state.refusal is not None
            raise self._state.refusal
        return self._sender

    # Topics

    async def learn(self, topic: str) -> TopicRoutes:
        """The partitions of a topic that isn't known yet.

        Raises:
            KafkaError: it isn't there within `max_block_ms`, or can't be written.
            ConnectionLostError: no broker says.
        """
        sender = self.sender
        ms = self._settings.max_block_ms
        try:
            info = await self._cluster.topic(topic, timeout_ms=ms, create=True)
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

    async def learn_partition(self, routes: TopicRoutes, partition: int) -> None:
        """Look whether a partition is there by now that wasn't.

        Raises:
            ValueError: it isn't.
        """
        if partition >= 0:
            self._cluster.follow((routes.topic,))
            await self._cluster.refresh(timeout_ms=self._settings.max_block_ms)
        if not 0 <= partition < len(routes.queues):
            raise ValueError(
                f"topic {routes.topic} has {len(routes.queues)} partitions, so there is none with number {partition}"
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
        """A new batch for a partition."""
        sender = self.sender
        self._state.add(queue.target)
        batch = self.accumulator.open_batch(queue, sender.now())
        sender.wake(queue)
        return batch

    async def make_room(self, queue: PartitionQueue, size: int, deadline: float | None) -> float:
        """Have a full batch sent; wait while memory is full. Returns until when (s), for the next call of this.

        Raises:
            RequestTimeoutError: it is too late.
        """
        sender = self.sender
        loop = asyncio.get_running_loop()
        if deadline is None:
            deadline = loop.time() + self._settings.max_block_ms / 1000
        if queue.open is not None:
            queue.seal()
            sender.wake(queue)
        if self.accumulator.buffered + size + HEADER_SIZE <= self._settings.buffer_memory:
            await asyncio.sleep(0)  # others want to do something, too, such as send what was sealed
            return deadline
        if loop.time() >= deadline:
            raise RequestTimeoutError(
                f"{queue.target}: buffer_memory={self._settings.buffer_memory} was full for "
                f"max_block_ms={self._settings.max_block_ms}: the brokers don't keep up, or can't be reached"
            )
        waiter = loop.create_future()
        self._waiting.add(waiter)
        self.accumulator.hurried += 1
        sender.wake_all()
        try:
            async with time_limit_at(deadline):
                await waiter
        except TimeoutError:
            pass  # the next call says so, unless there is room now
        finally:
            self.accumulator.hurried -= 1
            self._waiting.discard(waiter)
        return deadline

    def _progressed(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    def check_size(self, key: bytes | None, value: bytes | None, headers: PlainHeaders) -> None:
        """Refuse a record that no request has room for.

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
        """Wait until it is known what became of everything that there is now. It may be cancelled."""
        if self._sender is None:
            return
        batches: Sequence[ProducerBatch] = list(self.accumulator.pending())
        self.accumulator.hurried += 1
        self._sender.wake_all()
        try:
            await settled(batches)
        finally:
            self.accumulator.hurried -= 1

    def raise_losses(self, why: str | None = None) -> None:
        """Raise for what failed since the last time, and nobody looked at.

        Raises:
            NotDeliveredError: there is some.
        """
        lost, cause = self.judge.take_losses()
        if lost:
            raise NotDeliveredError(lost, why or cause) from cause
