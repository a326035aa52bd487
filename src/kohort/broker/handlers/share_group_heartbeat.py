"""ShareGroupHeartbeat: a member of a share group joins, stays or leaves, and gets its partitions (KIP-932)."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.reply import Reply, map_reply
from kohort.coordinator.share.results import HeartbeatResult
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

SERVED: Final = Served(ShareGroupHeartbeatRequest, versions=(1, 1), max_items=ONE_STEP)

LONGEST_MEMBER_ID: Final = 36
"""Characters: a UUID as text."""

Response = ShareGroupHeartbeatResponse


def handle(request: ShareGroupHeartbeatRequest, context: Context) -> Response | Reply[Response]:
    """Passes the heartbeat to the coordinator, and has the states initialized that it asks for."""
    groups = context.broker.groups
    if not groups.offered("share"):
        return _refuse(ErrorCode.UNSUPPORTED_VERSION)
    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not 0 < len(request.member_id) <= LONGEST_MEMBER_ID:
        return _refuse(ErrorCode.INVALID_REQUEST, f"MemberId must have 1 to {LONGEST_MEMBER_ID} characters.")
    names = dict.fromkeys(request.subscribed_topic_names or ())
    if not all(context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names):
        return _refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    done = groups.submit(
        request.group_id,
        lambda shard, now, reply: shard.share.heartbeat(request, context.client, now, reply),
        lambda code: HeartbeatResult.refused(KafkaError(code)),
    )
    return map_reply(done, lambda result: _response(request.group_id, result, context))


def _response(group_id: str, result: HeartbeatResult, context: Context) -> Response:
    """The response; states are initialized meanwhile, and the next heartbeat knows of it."""
    if result.initialization is not None:
        context.broker.share_group_states.initialize(group_id, result.initialization)
    return result.response


def _refuse(code: ErrorCode, detail: str | None = None) -> Response:
    return Response(error_code=code, error_message=detail)
