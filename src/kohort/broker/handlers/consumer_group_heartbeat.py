"""ConsumerGroupHeartbeat: a member of a consumer group joins, stays or leaves, and gets its partitions (KIP-848)."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.reply import Reply
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

SERVED: Final = Served(ConsumerGroupHeartbeatRequest, versions=(0, 1), max_items=ONE_STEP)

Response = ConsumerGroupHeartbeatResponse


def handle(request: ConsumerGroupHeartbeatRequest, context: Context) -> Response | Reply[Response]:
    """Passes the heartbeat to the coordinator."""
    groups = context.broker.groups
    if not groups.offered("consumer"):
        return _refuse(ErrorCode.UNSUPPORTED_VERSION)
    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    names = request.subscribed_topic_names or ()
    if not all(context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names):
        return _refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return groups.submit(
        request.group_id,
        lambda shard, now, reply: shard.consumer.heartbeat(request, context.client, now, reply),
        _refuse,
    )


def _refuse(code: ErrorCode) -> Response:
    return Response(error_code=code)
