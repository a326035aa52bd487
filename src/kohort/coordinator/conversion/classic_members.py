"""Members of consumer groups that use the classic protocol: SyncGroup, Heartbeat and LeaveGroup. See also `join`.

The broker assigns, so nobody leads: JoinGroup is answered at once with the member epoch as the generation, and
SyncGroup with what the member has in it. What a heartbeat of the consumer protocol would bring, a classic member gets
by joining again; its Heartbeat tells it to, with REBALANCE_IN_PROGRESS:

    when                                                  then
    ----------------------------------------------------  ------------------------------------------------------------
    the target is of a newer epoch than the member        it joins, with what it owns, and moves towards the target
    it has to revoke partitions (state Unrevoked)         it joins again when it has, which confirms it
    partitions that it waits for are free (Unreleased)    it joins, and gets them

A member of the consumer protocol doesn't exist for these requests: UNKNOWN_MEMBER_ID. Only LeaveGroup removes it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from kohort.coordinator.classic.group import CONSUMERS
from kohort.coordinator.classic.responses import sync_refused
from kohort.coordinator.consumer.draft import Draft
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import ConsumerMetadata
from kohort.coordinator.consumer.target_assignment import update_target
from kohort.coordinator.conversion.classic_metadata import ClassicMetadata, protocols_of
from kohort.coordinator.conversion.embedded_protocol import encode_assignment
from kohort.coordinator.conversion.groups import ConvertibleGroups
from kohort.coordinator.modern.cluster import Cluster
from kohort.coordinator.modern.group import Member
from kohort.coordinator.modern.member_identity import check_known
from kohort.coordinator.modern.partitions import Role
from kohort.coordinator.modern.states import MemberState
from kohort.coordinator.step import Answer, Client, Reply, Step
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kohort.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kohort.protocol.topic_partition import TopicIdPartition

ConsumerMember: TypeAlias = Member[ConsumerMetadata, TopicIdPartition, Role]

_LEAVE_BY_INSTANCE: Final = 3  # first version of LeaveGroup with several members, and static ones


class ClassicMembers:
    """Handles the requests of classic members to consumer groups that have members.

    Args:
        cluster: the topics, which classic members know by name.
    """

    def __init__(self, groups: ConvertibleGroups, cluster: Cluster) -> None:
        self._groups = groups
        self._cluster = cluster

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, now: int, reply: Reply) -> Step:
        """SyncGroup: the member gets what it has, at once. Nothing is persisted."""
        try:
            return Step(answers=[Answer(reply, self._sync(group, request, now))])
        except KafkaError as error:
            return Step(answers=[Answer(reply, sync_refused(error.code))])

    def _sync(self, group: ConsumerGroup, request: SyncGroupRequest, now: int) -> SyncGroupResponse:
        member, classic = _member(group, request.member_id, request.group_instance_id, request.generation_id)
        name, subscription = next(iter(protocols_of(classic).items()))
        if request.protocol_type not in (None, CONSUMERS) or request.protocol_name not in (None, name):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"The protocol is {name}, of {CONSUMERS}s.")
        if group.assignment_epoch > member.current.epoch and member.current.state is not MemberState.UNREVOKED:
            self._await_join(group, member, now)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "There is a newer target; the member has to join again.")
        self._groups.timeouts.synced(group.group_id, member.member_id)
        self._groups.heard_of(group, member.member_id, now)
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=encode_assignment(member.current.assigned, subscription, self._cluster),
        )

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, now: int, reply: Reply) -> Step:
        """Heartbeat: starts the session timeout over; REBALANCE_IN_PROGRESS tells the member to join again.

        It also makes a target that is due, since there may be no member of the consumer protocol to do so.
        """
        try:
            member, _ = _member(group, request.member_id, request.group_instance_id, request.generation_id)
        except KafkaError as error:
            return Step(answers=[Answer(reply, HeartbeatResponse(error_code=error.code))])
        self._groups.heard_of(group, member.member_id, now)
        draft = self._groups.begin(group, now)
        update_target(draft, self._cluster)
        code = ErrorCode.NONE
        if _has_to_rejoin(draft, member):
            self._await_join(group, member, now)
            code = ErrorCode.REBALANCE_IN_PROGRESS
        return self._groups.step(draft, reply, HeartbeatResponse(error_code=code), lambda _: HeartbeatResponse())

    def leave(self, group: ConsumerGroup, request: LeaveGroupRequest, client: Client, now: int, reply: Reply) -> Step:
        """LeaveGroup: members leave, or an administrator removes them, static ones by instance id alone."""
        several = client.version >= _LEAVE_BY_INSTANCE
        members: Sequence[LeaveGroupRequest.Member] = request.members
        if not several:
            members = [LeaveGroupRequest.Member(member_id=request.member_id, group_instance_id=None)]
        leaving: dict[str, None] = {}
        outcomes = []
        for each in members:
            outcome = LeaveGroupResponse.Member(member_id=each.member_id, group_instance_id=each.group_instance_id)
            try:
                leaving[_leaving_member(group, each.member_id, each.group_instance_id)] = None
            except KafkaError as error:
                outcome.error_code = error.code
            outcomes.append(outcome)
        draft = self._groups.begin(group, now)
        if leaving:
            self._groups.remove_members(draft, tuple(leaving), "it left", now)
        response = (
            LeaveGroupResponse(members=outcomes) if several else LeaveGroupResponse(error_code=outcomes[0].error_code)
        )
        return self._groups.step(draft, reply, response, lambda code: LeaveGroupResponse(error_code=code))

    def _await_join(self, group: ConsumerGroup, member: ConsumerMember, now: int) -> None:
        timeout = member.metadata.rebalance_timeout_ms
        self._groups.timeouts.await_join(group.group_id, member.member_id, now + timeout)


def _member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicMetadata]:
    """The classic member that sends a request.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    check_known(group, member_id, instance_id)
    member = group.members[member_id]
    classic = member.metadata.classic
    if classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} doesn't use the classic protocol.")
    if generation != member.current.epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"The member epoch is {member.current.epoch}, not {generation}.")
    return member, classic


def _leaving_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> str:
    """The id of a member that leaves; an administrator may name it by its instance id alone."""
    if not member_id and instance_id is not None:
        member_id = group.static_ids.get(instance_id, "")
    check_known(group, member_id, instance_id)
    return member_id


def _has_to_rejoin(draft: Draft, member: ConsumerMember) -> bool:
    current = member.current
    if current.epoch < draft.assignment_epoch or current.state is MemberState.UNREVOKED:
        return True
    if current.state is not MemberState.UNRELEASED:
        return False
    holders = draft.group.ownership.holders
    return not any(
        partition not in current.assigned and holders(partition) for partition in draft.target(member.member_id)
    )
