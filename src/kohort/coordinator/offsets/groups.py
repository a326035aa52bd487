"""What committed offsets need to know of the groups they belong to."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, Protocol

from kohort.coordinator.step import Record
from kohort.protocol.errors import ErrorCode

__all__ = ["EACH_COMMIT", "Groups"]

EACH_COMMIT: Final = -1
"""The retention of each offset of a group begins with its own commit."""


class Groups(Protocol):
    """The groups of a shard, of whatever protocol, as their offsets see them."""

    def group_ids(self) -> Collection[str]:
        """All groups that there are, "simple" ones (offsets, but no members and no protocol type) included."""
        ...

    def ensure(self, group_id: str) -> None:
        """Make an unknown group a simple one: an offset of it was replayed."""
        ...

    def validate_commit(
        self,
        group_id: str,
        member_id: str,
        generation_or_epoch: int,
        instance_id: str | None,
        partitions: Iterable[tuple[str, int]],
        *,
        transactional: bool,
        version: int,
        now: int,
    ) -> ErrorCode:
        """Whether offsets may be committed; where they may, the commit counts as the member's heartbeat.

        An unknown group accepts a negative generation (its offsets will make it a simple group) and refuses others:
        with GROUP_ID_NOT_FOUND from version 9 of OffsetCommit on, else, and in transactions, with ILLEGAL_GENERATION.
        `partitions` are the topics and numbers of what is committed. `version` is the version of OffsetCommit, or of
        TxnOffsetCommit for a transactional commit, which doesn't care for the state of a rebalance.
        """
        ...

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Whether the member may fetch offsets; GROUP_ID_NOT_FOUND for an unknown group, classic ones don't check."""
        ...

    def validate_delete(self, group_id: str) -> ErrorCode:
        """Whether offsets may be deleted: GROUP_ID_NOT_FOUND; NON_EMPTY_GROUP where subscriptions can't be known."""
        ...

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Whether members read the topic, or may do so for all one knows; False for an unknown group."""
        ...

    def retention_base(self, group_id: str) -> int | None:
        """When the retention of the group's offsets began, in ms since 1970: when it became empty.

        `EACH_COMMIT` for simple groups, for empty ones that don't know since when they are, and for stable ones whose
        subscriptions are known; None where offsets are kept for the time being.
        """
        ...

    def delete_if_empty(self, group_id: str) -> list[Record]:
        """The tombstones that remove a group without members; none for a group with members."""
        ...
