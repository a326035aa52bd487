"""Heartbeat: keeps a member of a classic group alive."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

SERVED: Final = Served(HeartbeatRequest, versions=(0, 4))


def handle(request: HeartbeatRequest, context: Context) -> HeartbeatResponse:
    """While the coordinator is loading, heartbeats succeed, as in Kafka."""
    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    try:
        shard = context.broker.groups.entry(request.group_id).shard
    except KafkaError as error:
        loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=ErrorCode.NONE if loading else error.code)
    return HeartbeatResponse(error_code=shard.classic.heartbeat(request, context.now))
