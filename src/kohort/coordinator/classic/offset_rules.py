"""Which offsets of classic groups may be committed, fetched, deleted and expired."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kohort.coordinator.classic.group import CONSUMERS, ClassicGroup
from kohort.coordinator.classic.groups import ClassicGroups
from kohort.coordinator.classic.states import GroupState
from kohort.coordinator.offsets import EACH_COMMIT
from kohort.coordinator.step import Record
from kohort.protocol.errors import ErrorCode

_GROUP_ID_NOT_FOUND: Final = 9  # first version of OffsetCommit with this error
_GROUP_ID_NOT_FOUND_IN_TRANSACTION: Final = 6  # the same of TxnOffsetCommit (KIP-1319)


class ClassicOffsetRules:
    def __init__(self, groups: ClassicGroups) -> None:
        self._groups = groups

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
        """Commits of members count as heartbeats, but not in a transaction."""
        del partitions
        generation = generation_or_epoch
        group = self._groups.get(group_id)
        if group is None:
            if generation < 0:
                return ErrorCode.NONE
            first = _GROUP_ID_NOT_FOUND_IN_TRANSACTION if transactional else _GROUP_ID_NOT_FOUND
            return ErrorCode.GROUP_ID_NOT_FOUND if version >= first else ErrorCode.ILLEGAL_GENERATION
        if generation < 0 and group.state is GroupState.EMPTY:
            return ErrorCode.NONE
        if generation >= 0 or member_id or instance_id is not None:
            if code := group.check_member(member_id, instance_id):
                return code
            if generation != group.generation:
                return ErrorCode.ILLEGAL_GENERATION
        elif not transactional:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if transactional:
            return ErrorCode.NONE
        if group.state is GroupState.COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        self._groups.rebalancer.reset_session_timeout(group, group.members[member_id], now)
        return ErrorCode.NONE

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Anyone may fetch a classic group's offsets."""
        del member_id, member_epoch
        return ErrorCode.GROUP_ID_NOT_FOUND if self._groups.get(group_id) is None else ErrorCode.NONE

    def validate_delete(self, group_id: str) -> ErrorCode:
        """NON_EMPTY_GROUP if the group has members whose subscriptions can't be read."""
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        readable = group.state is GroupState.EMPTY or group.protocol_type == CONSUMERS
        return ErrorCode.NONE if readable else ErrorCode.NON_EMPTY_GROUP

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Consumers whose subscriptions can't be read count as subscribed to every topic."""
        group = self._groups.get(group_id)
        if group is None:
            return False
        return group.protocol_type == CONSUMERS if group.subscribed_topics is None else topic in group.subscribed_topics

    def retention_base(self, group_id: str) -> int | None:
        group = self._groups.get(group_id)
        return None if group is None else _retention_base(group)

    def delete_if_empty(self, group_id: str) -> list[Record]:
        """Groups with pending members are kept."""
        group = self._groups.get(group_id)
        if group is None or group.state is not GroupState.EMPTY or group.pending_members:
            return []
        return self._groups.delete(group_id)


def _retention_base(group: ClassicGroup) -> int | None:
    if group.protocol_type is None:
        return EACH_COMMIT
    if group.state is GroupState.EMPTY:
        return group.state_since if group.state_since >= 0 else EACH_COMMIT
    subscribed = group.state is GroupState.STABLE and group.subscribed_topics is not None
    return EACH_COMMIT if subscribed else None
