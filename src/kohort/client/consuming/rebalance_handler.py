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
    from kohort.client.consuming.consumption import Consumption

__all__ = ["RebalanceCallback", "RebalanceHandler", "RebalanceListeners"]

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

    Attributes:
        subscription: the user's.
        listeners: the user's callbacks.
    """

    def __init__(self, consumption: Consumption, max_poll_interval_ms: int) -> None:
        self._consumption = consumption
        self._max_poll_interval_ms = max_poll_interval_ms
        self.subscription = Subscription()
        self.listeners = RebalanceListeners()

    async def revoke(self, partitions: AbstractSet[TopicPartition], *, lost: bool) -> None:
        consumption = self._consumption
        by_name = consumption.partitions.by_name
        # Partitions assigned by hand meanwhile have replaced the group's.
        going = {} if consumption.by_hand else {name: by_name[name] for name in partitions if name in by_name}
        names = set(going)
        with consumption.delivery.holding():
            consumption.partitions.hold(names)
            consumption.fetchers.update()
            try:
                if not lost:
                    await consumption.delivery.user_free(self._max_poll_interval_ms)
                    if consumption.commits is not None:
                        await consumption.commits.consumed(names)
                listeners = self.listeners
                tell = (listeners.on_lost or listeners.on_revoke) if lost else listeners.on_revoke
                if names:
                    await _call(tell, names)
            finally:
                consumption.drop({name for name, partition in going.items() if by_name.get(name) is partition})

    async def assign(self, added: AbstractSet[TopicPartition], assigned: AbstractSet[TopicPartition]) -> None:
        consumption = self._consumption
        new = consumption.partitions.add(added)
        consumption.cluster.follow({name.topic for name in assigned})
        try:
            with consumption.delivery.holding():  # after a seek in it, records are fetched, but it may have more to do
                await _call(self.listeners.on_assign, set(added))
        finally:
            consumption.partitions.release(new)
            consumption.resume_fetching()

    def suspend(self) -> None:
        self._consumption.suspend()

    def resume(self) -> None:
        self._consumption.resume_fetching()

    def failed(self, error: Exception) -> None:
        self._consumption.failed(error)

    def last_poll(self) -> int:
        return int(self._consumption.delivery.heard())


async def _call(callback: RebalanceCallback | None, partitions: set[TopicPartition]) -> None:
    if callback is not None:
        result = callback(set(partitions))
        if inspect.isawaitable(result):
            await result
