"""DescribeGroups: classic groups with their members, subscriptions and assignments."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.turns import Slices, in_slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

SERVED: Final = Served(DescribeGroupsRequest, versions=(0, 6))

_Group = DescribeGroupsResponse.Group


def handle(request: DescribeGroupsRequest, context: Context) -> Slices[DescribeGroupsResponse]:
    """Describes each group once: repeated groups could make the response many times as large as the request."""
    groups = dict.fromkeys(request.groups)
    described = yield from in_slices(lambda group_id: _describe(group_id, request, context), groups)
    return DescribeGroupsResponse(groups=described)


def _describe(group_id: str, request: DescribeGroupsRequest, context: Context) -> _Group:
    if not context.allowed(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return _Group(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    try:
        entry = context.broker.groups.entry(group_id)
    except KafkaError as error:
        return _Group(group_id=group_id, error_code=error.code)
    described = entry.shard.describe_group(group_id, context.version)
    if request.include_authorized_operations and not described.error_code:
        described.authorized_operations = context.operations(ResourceType.GROUP, group_id)
    return described
