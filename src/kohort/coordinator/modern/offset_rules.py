"""Which members of a modern group may commit and fetch offsets: STALE_MEMBER_EPOCH."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.group import Member
from kohort.protocol.errors import ErrorCode

_NOT_A_MEMBER: Final = -1
MEMBER_EPOCHS: Final = 9
"""First version of OffsetCommit that carries a member epoch (KIP-848)."""


def validate_commit(
    members: Mapping[str, Member[Any, Any, Any]],
    member_id: str,
    epoch: int,
    instance_id: str | None,
    partitions: Iterable[tuple[str, int]],
    assignment_epoch: Callable[[CurrentAssignment[Any, Any], str, int], int | None],
    *,
    transactional: bool,
    version: int,
) -> ErrorCode:
    """Whether offsets may be committed.

    A member may commit on its own epoch. On an older one it may for what it has had since then, so that a commit isn't
    lost that was under way when the epoch rose; but not for what it was given later, as another member had that before.

    Args:
        member_id, epoch, instance_id: who commits.
        partitions: topic and number of each partition that an offset is committed for.
        assignment_epoch: gives the epoch in which a member was given a partition; None if it doesn't have it.
        transactional: whether it is done in a transaction, which may leave the member out.
    """
    if epoch < 0 and not members:
        return ErrorCode.NONE
    if transactional and epoch == _NOT_A_MEMBER and not member_id and instance_id is None:
        return ErrorCode.NONE
    member = members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not transactional and version < MEMBER_EPOCHS:
        return ErrorCode.UNSUPPORTED_VERSION
    current = member.current
    if epoch == current.epoch:
        return ErrorCode.NONE
    if epoch > current.epoch:
        return ErrorCode.STALE_MEMBER_EPOCH
    for topic, partition in partitions:
        since = assignment_epoch(current, topic, partition)
        if since is None or epoch < since:
            return ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.NONE


def validate_fetch(members: Mapping[str, Member[Any, Any, Any]], member_id: str | None, epoch: int) -> ErrorCode:
    """Whether offsets may be fetched: by members on their epoch, and by clients that don't claim to be members."""
    if member_id is None and epoch < 0:
        return ErrorCode.NONE
    member = members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == member.current.epoch else ErrorCode.STALE_MEMBER_EPOCH
