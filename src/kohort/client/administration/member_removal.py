"""Removes members from groups, by each protocol's own request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kohort.client.administration.group_types import GroupDescription, GroupMember, GroupType
from kohort.client.administration.request_router import Failure, Node
from kohort.client.errors import UnsupportedError, kafka_error, raise_for
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kohort.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

_SEVERAL: Final = 3
"""The first version of LeaveGroup with several members, and static ones."""

_LEAVE: Final = -1
"""The member epoch of a member that leaves."""


class MemberToRemove(NamedTuple):
    """A member to remove: by its static name, else by its member id."""

    member_id: str = ""
    instance_id: str | None = None

    def __str__(self) -> str:
        return self.instance_id or self.member_id


async def remove(
    node: Node, group: GroupDescription, members: Sequence[MemberToRemove], reason: str
) -> Mapping[MemberToRemove, Failure | None]:
    """Removes members from a group at its coordinator; returns each one's error, None for success.

    LeaveGroup is for groups of consumers alone; for others, the member's leaving heartbeat is sent.
    """
    if group.type in (GroupType.CLASSIC, GroupType.CONSUMER):
        return await _remove_consumers(node, group.group_id, members, reason)
    outcomes: dict[MemberToRemove, Failure | None] = {}
    for member in members:
        found = _find(group.members, member)
        if found is None:
            outcomes[member] = KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        else:
            outcomes[member] = await _leave_for(node, group, found)
    return outcomes


async def _remove_consumers(
    node: Node, group_id: str, members: Sequence[MemberToRemove], reason: str
) -> Mapping[MemberToRemove, Failure | None]:
    if node.version(LeaveGroupRequest) < _SEVERAL:
        raise UnsupportedError(f"{node.broker} is too old to have members removed")
    leaving = [
        LeaveGroupRequest.Member(
            member_id="" if member.instance_id is not None else member.member_id,
            group_instance_id=member.instance_id,
            reason=reason,
        )
        for member in members
    ]
    answer = await node.ask(LeaveGroupRequest(group_id=group_id, members=leaving), LeaveGroupResponse)
    raise_for(answer.error_code)
    codes = [outcome.error_code for outcome in answer.members]  # in the order of the request
    return {member: kafka_error(code) if code else None for member, code in zip(members, codes, strict=False)}


def _find(members: Sequence[GroupMember], wanted: MemberToRemove) -> GroupMember | None:
    if wanted.instance_id is not None:
        return next((member for member in members if member.instance_id == wanted.instance_id), None)
    return next((member for member in members if member.member_id == wanted.member_id), None)


async def _leave_for(node: Node, group: GroupDescription, member: GroupMember) -> Failure | None:
    answer: ShareGroupHeartbeatResponse | StreamsGroupHeartbeatResponse
    if group.type is GroupType.SHARE:
        share = ShareGroupHeartbeatRequest(group_id=group.group_id, member_id=member.member_id, member_epoch=_LEAVE)
        answer = await node.ask(share, ShareGroupHeartbeatResponse)
    else:
        streams = StreamsGroupHeartbeatRequest(
            group_id=group.group_id, member_id=member.member_id, member_epoch=_LEAVE, instance_id=member.instance_id
        )
        answer = await node.ask(streams, StreamsGroupHeartbeatResponse)
    return kafka_error(answer.error_code, answer.error_message) if answer.error_code else None
