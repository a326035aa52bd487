"""Heartbeat: keeps a member of a classic group alive."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.reply import Reply
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

SERVED: Final = Served(HeartbeatRequest, versions=(0, 4))


def handle(request: HeartbeatRequest, context: Context) -> HeartbeatResponse | Reply[HeartbeatResponse]:
    """While the coordinator is loading, heartbeats succeed, as in Kafka."""
    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return context.broker.groups.submit(
        request.group_id, lambda shard, now, reply: shard.heartbeat(request, now, reply), _refuse
    )


def _refuse(code: ErrorCode) -> HeartbeatResponse:
    loading = code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if loading else code)
