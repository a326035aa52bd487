"""The responses of classic groups, and the errors in them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.member import Member
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.join_group import JoinGroupResponse
from kohort.protocol.messages.sync_group import SyncGroupResponse

_NULLABLE_PROTOCOL: Final = 7  # first version of JoinGroup that can do without a protocol


def join_refused(code: ErrorCode, member_id: str, version: int) -> JoinGroupResponse:
    """An error; with MEMBER_ID_REQUIRED the client has to join with the member id given here."""
    protocol = None if version >= _NULLABLE_PROTOCOL else ""
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_type=None, protocol_name=protocol)


def join_response(
    group: ClassicGroup,
    member: Member,
    *,
    members: Collection[Member],
    leader: str | None,
    skip_assignment: bool = False,
) -> JoinGroupResponse:
    """The generation that a member is in now; its leader gets all the members' metadata."""
    protocol = group.protocol or ""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=protocol,
        leader=leader or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=[
            JoinGroupResponse.Member(
                member_id=other.member_id,
                group_instance_id=other.instance_id,
                metadata=other.protocols[protocol],
            )
            for other in members
        ]
        if leader == member.member_id
        else [],
    )


def sync_refused(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code, protocol_type=None, protocol_name=None)


def sync_response(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment)
