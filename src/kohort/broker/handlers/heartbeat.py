"""Heartbeat: a member of a classic group is alive."""

from __future__ import annotations

from kohort.broker.context import Context
from kohort.broker.reply import Reply
from kohort.broker.security import Operation, ResourceType
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: HeartbeatRequest, context: Context) -> HeartbeatResponse | Reply[HeartbeatResponse]:
    """Ask the group's coordinator. While that is loading, the member is told that all is well, as in Kafka."""
    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return context.broker.groups.submit(
        request.group_id,
        lambda shard, now, reply: shard.classic.heartbeat(request, context.client, now, reply),
        _refuse,
    )


def _refuse(code: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=ErrorCode.NONE if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else code)
