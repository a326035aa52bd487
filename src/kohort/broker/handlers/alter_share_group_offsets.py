"""AlterShareGroupOffsets: sets where a share group without members goes on."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.reply import Reply, map_reply
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)

SERVED: Final = Served(AlterShareGroupOffsetsRequest, versions=(0, 0), max_items=ONE_STEP)

Response = AlterShareGroupOffsetsResponse


def handle(request: AlterShareGroupOffsetsRequest, context: Context) -> Response | Reply[Response]:
    """Answers when all states are safe in the log."""
    if not context.broker.groups.offered("share"):
        return _refuse(ErrorCode.UNSUPPORTED_VERSION)
    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return _refuse(ErrorCode.INVALID_GROUP_ID)
    refused = []
    offsets: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        code = _topic_error(topic.topic_name, context)
        if code:
            refused.append(_failed(topic, code, context))
        else:
            wanted = offsets.setdefault(topic.topic_name, {})
            wanted.update({each.partition_index: each.start_offset for each in topic.partitions})
    altered = context.broker.share_group_states.alter_offsets(request.group_id, offsets)
    return map_reply(altered, lambda response: _with(response, refused))


def _topic_error(name: str, context: Context) -> ErrorCode:
    if not context.allowed(Operation.READ, ResourceType.TOPIC, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    known = context.broker.topics.get(name) is not None
    return ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _failed(topic: AlterShareGroupOffsetsRequest.Topic, code: ErrorCode, context: Context) -> Response.TopicResponse:
    response = Response.TopicResponse(
        topic_name=topic.topic_name,
        partitions=[
            Response.TopicResponse.Partition(
                partition_index=each.partition_index, error_code=code, error_message=code.name
            )
            for each in topic.partitions
        ],
    )
    found = context.broker.topics.get(topic.topic_name)
    if found is not None:
        response.topic_id = found.id
    return response


def _with(response: Response, refused: list[Response.TopicResponse]) -> Response:
    if not response.error_code:
        response.responses = [*refused, *(response.responses or ())]
    return response


def _refuse(code: ErrorCode) -> Response:
    return Response(error_code=code, error_message=code.name)
