"""The sender of a heartbeat: a new member, a known one, or a static one that is back (KIP-345). Others are fenced."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from kohort.coordinator.consumer.draft import Draft
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import ConsumerMetadata
from kohort.coordinator.consumer.reconciliation_rules import RULES
from kohort.coordinator.member_lines import tell_joined
from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.fencing import check_member_epoch
from kohort.coordinator.modern.group import Member
from kohort.coordinator.modern.member_identity import check_known, check_room, replaced_member, returned
from kohort.coordinator.modern.partitions import Partitions, Role
from kohort.coordinator.step import Client
from kohort.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.protocol.topic_partition import TopicIdPartition

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a heartbeat.

    Attributes:
        metadata: its metadata before this heartbeat.
        current: its current assignment; empty if it is new.
        new: it wasn't in the group.
        behind: it may not know its epoch and assignment yet, so it gets them again.
        replaces: id of the member whose place it takes; its own if it had left for a while; None otherwise.
    """

    metadata: ConsumerMetadata
    current: CurrentAssignment[TopicIdPartition, Role]
    new: bool = False
    behind: bool = False
    replaces: str | None = None


def joining_member(draft: Draft, request: ConsumerGroupHeartbeatRequest, client: Client) -> Sender:
    """Returns the member that joins.

    Raises:
        KafkaError: GROUP_MAX_SIZE_REACHED; UNRELEASED_INSTANCE_ID, if another member has the instance id.
    """
    group, member_id, instance_id = draft.group, request.member_id, request.instance_id
    check_room(group, member_id, instance_id, draft.settings.max_size)
    static_id = None if instance_id is None else group.static_ids.get(instance_id)
    holder = None if static_id in (None, member_id) else group.members[static_id]
    if holder is not None and holder.metadata.classic is not None:
        return takes_its_place(draft, holder, member_id)  # a classic member can't leave for a while
    if (replaced := replaced_member(group, member_id, instance_id)) is not None:
        return takes_its_place(draft, replaced, member_id)
    member = group.members.get(member_id)
    if member is None:
        tell_joined(group.group_id, member_id, instance_id, client.client_id, client.host)
        return Sender(ConsumerMetadata(), CurrentAssignment(), new=True)
    log.info("member joins again group=%s member=%s epoch=%d", group.group_id, member_id, member.current.epoch)
    return Sender(member.metadata, member.current, behind=True)


def takes_its_place(draft: Draft, member: Member[ConsumerMetadata, TopicIdPartition, Role], member_id: str) -> Sender:
    """Returns a static member that is back, with the partitions that it had."""
    holder = member.member_id
    log.info("static member is back group=%s member=%s was=%s", draft.group_id, member_id, holder)
    target, current = draft.target(holder), returned(member.current)
    if holder != member_id:
        draft.remove_member(holder)
        draft.put_member(member_id, member.metadata)
        draft.put_target(member_id, target)
    draft.assume(member_id, current)
    return Sender(member.metadata, current, behind=True, replaces=holder)


def identified_member(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, owned: Partitions | None) -> Sender:
    """Returns a member of the group.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH.
    """
    check_known(group, request.member_id, request.instance_id)
    member = group.members[request.member_id]
    check_member_epoch("consumer", member.current, request.member_epoch, owned, RULES.exclusive)
    return Sender(member.metadata, member.current, behind=request.member_epoch != member.current.epoch)
