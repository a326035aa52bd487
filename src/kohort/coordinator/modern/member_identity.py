"""Who sends a heartbeat, as far as that is the same in all modern groups: known members, and static ones (KIP-345)."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, TypeVar

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.epochs import JOIN_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
from kohort.coordinator.modern.group import Member, ModernGroup
from kohort.coordinator.modern.reconciliation import Rules
from kohort.coordinator.modern.states import MemberState
from kohort.protocol.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

I = TypeVar("I")  # noqa: E741
R = TypeVar("R")


def check_room(group: ModernGroup[Any, Any, Any, Any], member_id: str, instance_id: str | None, max_size: int) -> None:
    """Raises GROUP_MAX_SIZE_REACHED if a joining member is new and the group is full."""
    known = member_id in group.members or (instance_id is not None and instance_id in group.static_ids)
    if not known and len(group.members) >= max_size:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED, f"The group has {len(group.members)} members, and may not have more."
        )


def replaced_member(
    group: ModernGroup[Any, Any, Any, Any], member_id: str, instance_id: str | None
) -> Member[Any, Any, Any] | None:
    """Returns the static member whose place a joining member takes: it left for a while. None if there is none.

    Raises:
        KafkaError: UNRELEASED_INSTANCE_ID, if another member has the instance id.
    """
    holder = None if instance_id is None else group.static_ids.get(instance_id)
    if holder is None:
        return None
    member = group.members[holder]
    if member.current.epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        return member
    if holder != member_id:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Instance {instance_id} is member {holder}, which has not left; two members can't be one instance.",
        )
    return None


def check_known(group: ModernGroup[Any, Any, Any, Any], member_id: str, instance_id: str | None) -> None:
    """Checks the sender of a heartbeat that doesn't join.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if instance_id is not None:
        holder = group.static_ids.get(instance_id)
        if holder is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member with instance id {instance_id} is not a member of group {group.group_id}.",
            )
        if holder != member_id:
            raise KafkaError(
                ErrorCode.FENCED_INSTANCE_ID, f"Instance {instance_id} is member {holder} now, not {member_id}."
            )
    if member_id not in group.members:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")


def away(current: CurrentAssignment[I, R], rules: Rules[R]) -> CurrentAssignment[I, R]:
    """The current assignment of a static member that left for a while: it keeps what it has, until its session ends."""
    return replace(
        current,
        epoch=LEAVE_GROUP_STATIC_MEMBER_EPOCH,
        state=MemberState.STABLE,
        revoking={},
        assignment_epochs={item: 0 for item, role in current.assigned.items() if role in rules.exclusive},
    )


def returned(current: CurrentAssignment[I, R]) -> CurrentAssignment[I, R]:
    """The current assignment of a static member that is back, before it is reconciled again."""
    return replace(
        current,
        epoch=JOIN_GROUP_MEMBER_EPOCH,
        previous_epoch=JOIN_GROUP_MEMBER_EPOCH,
        state=MemberState.STABLE,
    )
