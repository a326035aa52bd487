"""The requests of a member of a classic streams group, by what it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.client.streams.classic.protocol import PROTOCOL_NAME, PROTOCOL_TYPE
from kohort.client.streams.classic.subscription import Subscription
from kohort.client.streams.settings import MemberSettings
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.join_group import JoinGroupRequest
from kohort.protocol.messages.leave_group import LeaveGroupRequest
from kohort.protocol.messages.sync_group import SyncGroupRequest
from kohort.streams.tasks import Role, TaskId

_SEVERAL_MEMBERS: Final = 3
"""First version of LeaveGroup with a list of members."""


def subscription_of(
    settings: MemberSettings,
    owned: Mapping[TaskId, Role],
    offsets: Mapping[TaskId, int],
    ends: Mapping[TaskId, int],
    *,
    shutdown: bool,
) -> Subscription:
    """Returns what a member tells its leader.

    Args:
        owned: the tasks that it has, and those that it hasn't closed yet.
        offsets: how far the state on its disk is, by task.
        ends: the ends of the changelogs of these tasks.
        shutdown: it asks that all stop.
    """
    parts = settings.topology.subtopologies
    return Subscription(
        tasks=owned,
        state_stores={
            task: len(parts[task.subtopology].changelogs)
            for task in sorted(owned.keys() | offsets.keys())
            if task.subtopology in parts
        },
        offsets=offsets,
        ends=ends,
        process_id=settings.process_id,
        rack_id=settings.rack_id,
        client_tags=settings.client_tags,
        user_endpoint=settings.user_endpoint,
        topology=settings.topology,
        shutdown=shutdown,
    )


def join_group(
    settings: MemberSettings, member_id: str, subscription: bytes, session_timeout_ms: int, reason: str | None
) -> JoinGroupRequest:
    """Returns a JoinGroup; `reason` is for the coordinator's log."""
    return JoinGroupRequest(
        group_id=settings.group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=settings.rebalance_timeout_ms,
        member_id=member_id,
        group_instance_id=settings.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=[JoinGroupRequest.Protocol(name=PROTOCOL_NAME, metadata=subscription)],
        reason=reason,
    )


def sync_group(
    settings: MemberSettings, member_id: str, generation: int, assignments: Mapping[str, bytes]
) -> SyncGroupRequest:
    """Returns a SyncGroup; only a leader's has assignments, by member id."""
    return SyncGroupRequest(
        group_id=settings.group_id,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=settings.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=PROTOCOL_NAME,
        assignments=[
            SyncGroupRequest.Assignment(member_id=name, assignment=assignment)
            for name, assignment in assignments.items()
        ],
    )


def heartbeat(settings: MemberSettings, member_id: str, generation: int) -> HeartbeatRequest:
    """Returns a Heartbeat."""
    return HeartbeatRequest(
        group_id=settings.group_id,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=settings.instance_id,
    )


def leave_group(settings: MemberSettings, member_id: str, version: int) -> LeaveGroupRequest:
    """Returns a LeaveGroup in a version; without a member id, it is the instance id that leaves."""
    if version < _SEVERAL_MEMBERS:
        return LeaveGroupRequest(group_id=settings.group_id, member_id=member_id)
    return LeaveGroupRequest(
        group_id=settings.group_id,
        members=[
            LeaveGroupRequest.Member(
                member_id=member_id, group_instance_id=settings.instance_id, reason="the application leaves"
            )
        ],
    )
