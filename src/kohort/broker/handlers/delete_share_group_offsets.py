"""DeleteShareGroupOffsets: a share group without members forgets how far it is in topics."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.reply import Reply, map_reply
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)

SERVED: Final = Served(DeleteShareGroupOffsetsRequest, versions=(0, 0), max_items=ONE_STEP)

Response = DeleteShareGroupOffsetsResponse


def handle(request: DeleteShareGroupOffsetsRequest, context: Context) -> Response | Reply[Response]:
    """Answers when all tombstones are safe in the log."""
    if not context.broker.groups.offered("share"):
        return _refuse(ErrorCode.UNSUPPORTED_VERSION)
    if not context.allowed(Operation.DELETE, ResourceType.GROUP, request.group_id):
        return _refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return _refuse(ErrorCode.INVALID_GROUP_ID)
    names = list(dict.fromkeys(topic.topic_name for topic in request.topics))
    allowed = dict.fromkeys(name for name in names if context.allowed(Operation.READ, ResourceType.TOPIC, name))
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    refused = [
        Response.TopicResponse(topic_name=name, error_code=code, error_message=code.name)
        for name in names
        if name not in allowed
    ]
    deleted = context.broker.share_group_states.delete_offsets(request.group_id, allowed)
    return map_reply(deleted, lambda response: _with(response, refused))


def _with(response: Response, refused: list[Response.TopicResponse]) -> Response:
    if not response.error_code:
        response.responses = [*refused, *(response.responses or ())]
    return response


def _refuse(code: ErrorCode) -> Response:
    return Response(error_code=code, error_message=code.name)
