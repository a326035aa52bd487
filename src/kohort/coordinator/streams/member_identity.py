"""The sender of a heartbeat: a new member, a known one, or a static one that is back (KIP-345). Others are fenced."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.epochs import JOIN_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
from kohort.coordinator.modern.fencing import check_member_epoch
from kohort.coordinator.modern.states import MemberState
from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.member import StreamsMetadata
from kohort.coordinator.streams.reconciliation_rules import RULES
from kohort.coordinator.streams.refined_target import hand_over
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kohort.streams.tasks import Role, TaskId

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a heartbeat.

    Attributes:
        metadata: its metadata before this heartbeat.
        current: its current assignment; empty if it is new.
        new: it wasn't in the group.
        behind: it may not know its epoch and assignment yet. Until it does, it gets them again and isn't reconciled:
            what it reports may be old.
        replaces: id of the member whose place it takes; its own if it had left for a while; None otherwise.
    """

    metadata: StreamsMetadata
    current: CurrentAssignment[TaskId, Role]
    new: bool = False
    behind: bool = False
    replaces: str | None = None


def joining_member(draft: Draft, request: StreamsGroupHeartbeatRequest) -> Sender:
    """Returns the member that joins.

    Raises:
        KafkaError: GROUP_MAX_SIZE_REACHED; UNRELEASED_INSTANCE_ID, if another member has the instance id.
    """
    group, member_id, instance_id = draft.group, request.member_id, request.instance_id
    holder = None if instance_id is None else group.static_ids.get(instance_id)
    if holder is None and member_id not in group.members and len(group.members) >= draft.settings.max_size:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED, f"The group has {len(group.members)} members, and may not have more."
        )
    if holder is not None:
        away = group.members[holder].current.epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH
        if away:
            return _takes_its_place(draft, holder, request)
        if holder != member_id:
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Instance {instance_id} is member {holder}, which has not left; two members can't be one instance.",
            )
    member = group.members.get(member_id)
    if member is None:
        log.info("member joins group=%s member=%s instance=%s", group.group_id, member_id, instance_id)
        return Sender(StreamsMetadata(), CurrentAssignment(), new=True)
    log.info("member joins again group=%s member=%s epoch=%d", group.group_id, member_id, member.current.epoch)
    return Sender(member.metadata, member.current, behind=True)


def _takes_its_place(draft: Draft, holder: str, request: StreamsGroupHeartbeatRequest) -> Sender:
    """Returns a static member that is back: with its tasks, or with none if it runs another topology now."""
    member, member_id = draft.group.members[holder], request.member_id
    log.info("static member is back group=%s member=%s was=%s", draft.group.group_id, member_id, holder)
    goes_on = request.topology is not None and request.topology.epoch == member.metadata.topology_epoch
    target = draft.target(holder) if goes_on else {}
    hand_over(draft, holder, member_id, goes_on=goes_on)
    if holder != member_id:
        draft.remove_member(holder)
    if holder != member_id or not goes_on:
        draft.put_target(member_id, target)
    current: CurrentAssignment[TaskId, Role] = CurrentAssignment()
    if goes_on:
        current = replace(
            member.current,
            epoch=JOIN_GROUP_MEMBER_EPOCH,
            previous_epoch=JOIN_GROUP_MEMBER_EPOCH,
            state=MemberState.STABLE,
        )
    draft.assume(member_id, current)
    return Sender(member.metadata, current, replaces=holder)


def identified_member(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest, owned: Mapping[TaskId, Role] | None
) -> Sender:
    """Returns a member of the group.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH.
    """
    _check_known(group, request.member_id, request.instance_id)
    member = group.members[request.member_id]
    check_member_epoch(member.current, request.member_epoch, owned, RULES.exclusive)
    return Sender(member.metadata, member.current, behind=request.member_epoch != member.current.epoch)


def leaving_member(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> str:
    """Returns the id of the member that leaves.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    _check_known(group, request.member_id, request.instance_id)
    return request.member_id


def _check_known(group: StreamsGroup, member_id: str, instance_id: str | None) -> None:
    if instance_id is not None:
        holder = group.static_ids.get(instance_id)
        if holder is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"The group has no instance {instance_id}.")
        if holder != member_id:
            raise KafkaError(
                ErrorCode.FENCED_INSTANCE_ID, f"Instance {instance_id} is member {holder} now, not {member_id}."
            )
    if member_id not in group.members:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"The group has no member {member_id}.")
