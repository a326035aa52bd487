"""Which offsets of a group may be committed, fetched, deleted and expired: up to each group protocol."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, Protocol

from kohort.coordinator.step import Record
from kohort.protocol.errors import ErrorCode

EACH_COMMIT: Final = -1
"""The retention of each offset of a group begins with its own commit."""


class OffsetGroups(Protocol):
    def group_ids(self) -> Collection[str]:
        """All groups, with "simple" ones, which have offsets, but no members and no protocol type."""
        ...

    def ensure_simple_group(self, group_id: str) -> None:
        """Makes an unknown group a simple one, as an offset of it was replayed."""
        ...

    def offset_rules(self, group_id: str) -> OffsetRules:
        """The rules of a group's protocol; for an unknown group those of classic groups."""
        ...


class OffsetRules(Protocol):
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
        """Whether offsets may be committed; if so, the commit counts as the member's heartbeat.

        An unknown group accepts a negative generation (its offsets will make it a simple group) and refuses others,
        with GROUP_ID_NOT_FOUND from version 9 of OffsetCommit and 6 of TxnOffsetCommit on, else ILLEGAL_GENERATION.
        `partitions` are topics and partition numbers. `version` is the version of OffsetCommit, or of TxnOffsetCommit
        for a transactional commit, which is accepted in any state of a rebalance.
        """
        ...

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Whether the member may fetch offsets; GROUP_ID_NOT_FOUND for an unknown group. Classic groups don't check."""
        ...

    def validate_delete(self, group_id: str) -> ErrorCode:
        """Whether offsets may be deleted: GROUP_ID_NOT_FOUND; NON_EMPTY_GROUP if subscriptions can't be read."""
        ...

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Whether members read the topic, or may do so; False for an unknown group."""
        ...

    def retention_base(self, group_id: str) -> int | None:
        """When the retention of the group's offsets began, in ms since 1970: when the group became empty.

        `EACH_COMMIT` for simple groups, for groups that became empty at an unknown time, and for stable ones whose
        subscriptions are known. None if no offset expires now.
        """
        ...

    def delete_if_empty(self, group_id: str) -> list[Record]:
        """The tombstones that remove a group without members; none for a group with members."""
        ...
