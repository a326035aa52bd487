"""The consumer, as its coordinator connector sees it."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Protocol

from kohort.client.membership.settings import Subscription
from kohort.client.types import TopicPartition


class Delegate(Protocol):
    """What the connector tells a consumer to do, in the order of the lightweight consumer's design.

    The connector makes one call of `revoke` and `assign` at a time and waits for its end; heartbeats go on meanwhile.
    What they raise goes to `failed`, but the partitions count as revoked or taken.
    """

    @property
    def subscription(self) -> Subscription:
        """The user's subscription. After it changes, call `CoordinatorConnector.subscription_changed`."""

    async def revoke(self, partitions: AbstractSet[TopicPartition], *, lost: bool) -> None:
        """Revokes partitions. The connector acknowledges when this returns.

        Stops their fetchers and clears their queues first, before anything is awaited. Then, unless they are lost:
        waits until the user's loop has come back for its next record (for `max_poll_interval_ms` at most), and commits
        what was consumed, with auto commit (`CoordinatorConnector.commit` works in the meantime). Then calls the user's
        callback. Lost partitions may be another member's already: it waits for nobody, and commits nothing.
        It may be cancelled, when the time to close is up.
        """

    async def assign(self, added: AbstractSet[TopicPartition], assigned: AbstractSet[TopicPartition]) -> None:
        """Takes partitions: `added` is new (perhaps nothing), `assigned` is all that the member has now.

        Calls the user's callback, looks up committed offsets, then starts the fetchers.
        """

    def suspend(self) -> None:
        """Stops all fetchers and clears their queues: the connection to the coordinator is lost.

        The consumer keeps the partitions, with their consumed offsets, until `resume`, or `revoke(…, lost=True)`.
        """

    def resume(self) -> None:
        """Starts the fetchers at the consumed offsets: the coordinator is back, and the member still has its place."""

    def failed(self, error: Exception) -> None:
        """Raises this where the user polls.

        After a fatal error (`CoordinatorConnector.failed`), all partitions were taken away, and the member stays out
        until the subscription changes.
        """

    def last_poll(self) -> int:
        """Returns when the user last polled, in ms of the event loop's clock; now, if they wait for records."""
