"""StreamsGroupDescribe: streams groups with their topologies, members and tasks."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

SERVED: Final = Served(StreamsGroupDescribeRequest, versions=(0, 1))

_Group = StreamsGroupDescribeResponse.Group


def handle(request: StreamsGroupDescribeRequest, context: Context) -> StreamsGroupDescribeResponse:
    """Describes each group once: repeated groups could make the response many times as large as the request."""
    groups = dict.fromkeys(request.group_ids)
    return StreamsGroupDescribeResponse(groups=[_describe(group_id, request, context) for group_id in groups])


def _describe(group_id: str, request: StreamsGroupDescribeRequest, context: Context) -> _Group:
    groups = context.broker.groups
    if not groups.offered("streams"):
        return _failed(group_id, ErrorCode.UNSUPPORTED_VERSION)
    if not context.allowed(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return _failed(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not group_id:
        return _failed(group_id, ErrorCode.INVALID_GROUP_ID)
    try:
        described = groups.entry(group_id).shard.streams.describe(
            group_id, with_description=request.include_topology_description
        )
    except KafkaError as error:
        return _failed(group_id, error.code, error.detail)
    if not _topics_allowed(described, context):
        return _failed(
            group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The group uses topics that the client may not describe."
        )
    if request.include_authorized_operations and not described.error_code:
        described.authorized_operations = context.operations(ResourceType.GROUP, group_id)
    return described


def _topics_allowed(group: _Group, context: Context) -> bool:
    if context.broker.authorizer is None or group.topology is None:
        return True
    names = {
        name
        for subtopology in group.topology.subtopologies or ()
        for name in (
            *subtopology.source_topics,
            *subtopology.repartition_sink_topics,
            *(topic.name for topic in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics)),
        )
    }
    return all(context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names)


def _failed(group_id: str, code: ErrorCode, detail: str | None = None) -> _Group:
    return _Group(group_id=group_id, error_code=code, error_message=detail)
