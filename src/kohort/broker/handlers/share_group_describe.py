"""ShareGroupDescribe: state, members and assignments of share groups."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse

SERVED: Final = Served(ShareGroupDescribeRequest, versions=(1, 1))

_Group = ShareGroupDescribeResponse.Group


def handle(request: ShareGroupDescribeRequest, context: Context) -> ShareGroupDescribeResponse:
    """Describes each group once: repeated groups could make the response many times as large as the request."""
    groups = dict.fromkeys(request.group_ids)
    return ShareGroupDescribeResponse(groups=[_describe(group_id, request, context) for group_id in groups])


def _describe(group_id: str, request: ShareGroupDescribeRequest, context: Context) -> _Group:
    groups = context.broker.groups
    if not groups.offered("share"):
        return _failed(group_id, ErrorCode.UNSUPPORTED_VERSION)
    if not context.allowed(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return _failed(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not group_id:
        return _failed(group_id, ErrorCode.INVALID_GROUP_ID)
    try:
        described = groups.entry(group_id).shard.share.describe(group_id)
    except KafkaError as error:
        return _failed(group_id, error.code, error.detail)
    names = {topic.topic_name for member in described.members for topic in member.assignment.topic_partitions}
    if not all(context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names):
        return _failed(
            group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The group uses topics that the client may not describe."
        )
    if request.include_authorized_operations and not described.error_code:
        described.authorized_operations = context.operations(ResourceType.GROUP, group_id)
    return described


def _failed(group_id: str, code: ErrorCode, detail: str | None = None) -> _Group:
    return _Group(group_id=group_id, error_code=code, error_message=detail)
