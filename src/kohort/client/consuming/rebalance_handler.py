"""What a consumer does in a rebalance: revoke and assign, in the design's order, with the user's callbacks."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kohort.client.coordinator_connector import Subscription
from kohort.client.types import TopicPartition

if TYPE_CHECKING:
    from kohort.client.consuming.running_consumer import RunningConsumer

RebalanceCallback = Callable[[set[TopicPartition]], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class RebalanceListeners:
    """The user's callbacks; without `on_lost`, `on_revoke` is called for lost partitions, too."""

    on_assign: RebalanceCallback | None = None
    on_revoke: RebalanceCallback | None = None
    on_lost: RebalanceCallback | None = None


class RebalanceHandler:
    """The connector's delegate.

    Args:
        consumer: its partitions, fetchers and commits.
        max_poll_interval_ms: how long to wait for the user's loop.
    """

    def __init__(self, consumer: RunningConsumer, max_poll_interval_ms: int) -> None:
        self._consumer = consumer
        self._max_poll_interval_ms = max_poll_interval_ms
        self.subscription = Subscription()
        self.listeners = RebalanceListeners()

    async def revoke(self, partitions: AbstractSet[TopicPartition], *, lost: bool) -> None:
        consumer = self._consumer
        by_name = consumer.partitions.by_name
        # Partitions assigned by hand meanwhile have replaced the group's.
        going = {} if consumer.by_hand else {name: by_name[name] for name in partitions if name in by_name}
        names = set(going)
        with consumer.collector.holding():
            consumer.partitions.hold(names)
            consumer.fetchers.update()
            try:
                if not lost:
                    await consumer.collector.wait_for_user(self._max_poll_interval_ms)
                    if consumer.commits is not None:
                        await consumer.commits.auto_commit(names)
                listeners = self.listeners
                tell = (listeners.on_lost or listeners.on_revoke) if lost else listeners.on_revoke
                if names:
                    await _call(tell, names)
            finally:
                consumer.drop({name for name, partition in going.items() if by_name.get(name) is partition})

    async def assign(self, added: AbstractSet[TopicPartition], assigned: AbstractSet[TopicPartition]) -> None:
        consumer = self._consumer
        new = consumer.partitions.add(added)
        consumer.cluster.follow({name.topic for name in assigned})
        try:
            with consumer.collector.holding():  # after a seek in it, records are fetched, but it may have more to do
                await _call(self.listeners.on_assign, set(added))
        finally:
            consumer.partitions.release(new)
            consumer.resume_fetching()

    def suspend(self) -> None:
        self._consumer.suspend()

    def resume(self) -> None:
        self._consumer.resume_fetching()

    def failed(self, error: Exception) -> None:
        self._consumer.failed(error)

    def last_poll(self) -> int:
        return int(self._consumer.collector.last_poll())


async def _call(callback: RebalanceCallback | None, partitions: set[TopicPartition]) -> None:
    if callback is not None:
        result = callback(set(partitions))
        if inspect.isawaitable(result):
            await result
