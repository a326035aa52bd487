"""Who consumes for a member, as the coordinator connector sees it."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Protocol

from kohort.client.connector.settings import Subscription
from kohort.client.types import TopicPartition

__all__ = ["Delegate"]


class Delegate(Protocol):
    """Who consumes for a member: what the connector tells it to do, in the order of the lightweight consumer's design.

    The connector makes one call of `revoke` and `assign` at a time and waits for its end; meanwhile it keeps the
    heartbeats going. What they raise fails the consumer (`failed`), but the partitions count as given up or taken.
    """

    def subscription(self) -> Subscription:
        """What the user wants to read now. After it changes, call `CoordinatorConnector.subscription_changed`."""

    async def revoke(self, partitions: AbstractSet[TopicPartition], *, lost: bool) -> None:
        """Give partitions up. The connector acknowledges when this returns.

        Stop their fetchers and clear their queues first, before anything is awaited. Then, unless they are lost: wait
        until the user's loop has come back for its next record (for `max_poll_interval_ms` at most), and commit what
        was consumed, if that happens automatically (`CoordinatorConnector.commit` works in the meantime). Then the
        user's callback. Lost partitions may be others' already: wait for nobody, commit nothing.
        It may be cancelled, when the time to close is up.
        """

    async def assign(self, added: AbstractSet[TopicPartition], assigned: AbstractSet[TopicPartition]) -> None:
        """Take partitions: `added` is new (perhaps nothing), `assigned` is all there is now.

        The user's callback, committed offsets, then the fetchers.
        """

    def suspend(self) -> None:
        """Stop all fetchers and clear their queues: the connection to the coordinator is lost.

        The partitions stay the consumer's, with their consumed offsets, until `resume`, or `revoke(…, lost=True)`.
        """

    def resume(self) -> None:
        """The coordinator is back and the member still has its place: start the fetchers at the consumed offsets."""

    def failed(self, error: Exception) -> None:
        """Raise this where the user asks for the next record.

        If the group can't be gone on with (`CoordinatorConnector.failed`), all partitions were taken away, and the
        member stays out until the subscription changes.
        """

    def user_heard(self) -> int:
        """When the user last asked for records, in ms of the event loop's clock; now, if they wait for some."""
