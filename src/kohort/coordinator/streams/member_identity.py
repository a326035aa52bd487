"""The sender of a heartbeat: a new member, a known one, or a static one that is back (KIP-345). Others are fenced."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from kohort.coordinator.member_lines import tell_joined
from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.fencing import check_member_epoch
from kohort.coordinator.modern.member_identity import check_known, check_room, replaced_member, returned
from kohort.coordinator.step import Client
from kohort.coordinator.streams.draft import Draft
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.member import StreamsMetadata
from kohort.coordinator.streams.reconciliation_rules import RULES
from kohort.coordinator.streams.refined_target import hand_over
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


def joining_member(draft: Draft, request: StreamsGroupHeartbeatRequest, client: Client) -> Sender:
    """Returns the member that joins.

    Raises:
        KafkaError: GROUP_MAX_SIZE_REACHED; UNRELEASED_INSTANCE_ID, if another member has the instance id.
    """
    group, member_id, instance_id = draft.group, request.member_id, request.instance_id
    check_room(group, member_id, instance_id, draft.settings.max_size)
    if (replaced := replaced_member(group, member_id, instance_id)) is not None:
        return _takes_its_place(draft, replaced.member_id, request)
    member = group.members.get(member_id)
    if member is None:
        tell_joined(group.group_id, member_id, instance_id, client.client_id, client.host)
        return Sender(StreamsMetadata(), CurrentAssignment(), new=True)
    log.info("member joins again group=%s member=%s epoch=%d", group.group_id, member_id, member.current.epoch)
    holds = bool(member.current.assigned or member.current.revoking)
    return Sender(member.metadata, member.current, behind=holds)  # what it says it has can't be old if it had nothing


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
        current = returned(member.current)
    draft.assume(member_id, current)
    return Sender(member.metadata, current, replaces=holder)


def identified_member(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest, owned: Mapping[TaskId, Role] | None
) -> Sender:
    """Returns a member of the group.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH.
    """
    check_known(group, request.member_id, request.instance_id)
    member = group.members[request.member_id]
    check_member_epoch("streams", member.current, request.member_epoch, owned, RULES.exclusive)
    return Sender(member.metadata, member.current, behind=request.member_epoch != member.current.epoch)


def leaving_member(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> str:
    """Returns the id of the member that leaves.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    check_known(group, request.member_id, request.instance_id)
    return request.member_id
