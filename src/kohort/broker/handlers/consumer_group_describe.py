"""ConsumerGroupDescribe: consumer groups with their members and partitions."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse

SERVED: Final = Served(ConsumerGroupDescribeRequest, versions=(0, 1))

_Group = ConsumerGroupDescribeResponse.Group


def handle(request: ConsumerGroupDescribeRequest, context: Context) -> ConsumerGroupDescribeResponse:
    """Describes each group once: repeated groups could make the response many times as large as the request."""
    groups = dict.fromkeys(request.group_ids)
    return ConsumerGroupDescribeResponse(groups=[_describe(group_id, request, context) for group_id in groups])


def _describe(group_id: str, request: ConsumerGroupDescribeRequest, context: Context) -> _Group:
    groups = context.broker.groups
    if not groups.offered("consumer"):
        return _failed(group_id, ErrorCode.UNSUPPORTED_VERSION)
    if not context.allowed(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return _failed(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not group_id:
        return _failed(group_id, ErrorCode.INVALID_GROUP_ID)
    try:
        described = groups.entry(group_id).shard.consumer.describe(group_id)
    except KafkaError as error:
        return _failed(group_id, error.code, error.detail)
    if not _topics_allowed(described, context):
        return _failed(
            group_id,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "Members have partitions of topics that the client may not describe.",
        )
    if request.include_authorized_operations and not described.error_code:
        described.authorized_operations = context.operations(ResourceType.GROUP, group_id)
    return described


def _topics_allowed(group: _Group, context: Context) -> bool:
    if context.broker.authorizer is None:
        return True
    names = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    return all(context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names)


def _failed(group_id: str, code: ErrorCode, detail: str | None = None) -> _Group:
    return _Group(group_id=group_id, error_code=code, error_message=detail)
