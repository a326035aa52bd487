"""A streams member as `kohort.client.member_offsets` needs it to commit its offsets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from kohort.client.streams.membership import StreamsMembership
from kohort.client.types import GroupMetadata, TopicPartition


class CommittingStreamsMember:
    """The member that commits.

    Args:
        heartbeat_now: sends a heartbeat soon, and waits for its response.
    """

    def __init__(self, membership: StreamsMembership, heartbeat_now: Callable[[], Awaitable[None]]) -> None:
        self._membership, self._heartbeat_now = membership, heartbeat_now

    def group_metadata(self) -> GroupMetadata:
        """Its id, and its epoch or generation now."""
        return self._membership.group_metadata()

    def holds(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether it runs the tasks that read these partitions."""
        return self._membership.runs(partitions)

    async def moved_on(self, generation: int) -> bool:
        """Waits for the coordinator's next response; returns whether its epoch is another one then."""
        if self._membership.epoch == generation:
            await self._heartbeat_now()
        return self._membership.epoch not in (self._membership.no_epoch, generation)
