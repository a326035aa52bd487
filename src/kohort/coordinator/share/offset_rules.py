"""Rules for the committed offsets of share groups: they have none."""

from __future__ import annotations

from collections.abc import Iterable

from kohort.coordinator.step import Record
from kohort.protocol.errors import ErrorCode


class ShareOffsetRules:
    """Every request for committed offsets is refused, as the group isn't one of consumers."""

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
        return ErrorCode.GROUP_ID_NOT_FOUND

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def validate_delete(self, group_id: str) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        return False

    def retention_base(self, group_id: str) -> int | None:
        """None: nothing expires, and an empty group isn't removed either, as it may have states."""
        return None

    def delete_if_empty(self, group_id: str) -> list[Record]:
        return []
