"""What has to be known of a streams member to commit in its name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Final

from kohort.client.streams.membership import Membership
from kohort.client.types import GroupMetadata, TopicPartition

__all__ = ["Standing"]


class Standing:
    """A member as `kohort.client.group_offsets` sees it.

    Args:
        membership: the member.
        hear: waits for the next answer of the coordinator, and has it come soon.
    """

    lane: Final = "coordinator"

    def __init__(self, membership: Membership, hear: Callable[[], Awaitable[None]]) -> None:
        self._membership, self._hear = membership, hear

    def group_metadata(self) -> GroupMetadata:
        """Who it is to its group now."""
        return self._membership.group_metadata()

    def holds(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether it runs the tasks that read these partitions."""
        return self._membership.runs(partitions)

    async def moved_on(self, generation: int) -> bool:
        """Hear from the coordinator; whether the member has another epoch then."""
        if self._membership.epoch == generation:
            await self._hear()
        return self._membership.epoch not in (0, generation)
