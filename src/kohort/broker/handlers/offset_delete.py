"""OffsetDelete: deletes committed offsets of topics that no member of the group subscribes to."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.offset_requests import TopicMerger, sort_partitions
from kohort.broker.reply import Reply, map_reply
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

SERVED: Final = Served(OffsetDeleteRequest, versions=(0, 0), max_items=ONE_STEP)

_Topic = OffsetDeleteResponse.Topic


def handle(request: OffsetDeleteRequest, context: Context) -> OffsetDeleteResponse | Reply[OffsetDeleteResponse]:
    """Deletes the offsets of partitions that exist and may be read; the others get errors."""
    if not context.allowed(Operation.DELETE, ResourceType.GROUP, request.group_id):
        return _refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused: list[_Topic] = []
    accepted: list[OffsetDeleteRequest.Topic] = []
    for topic in request.topics:
        known, unknown, error = sort_partitions(context, topic.name, topic.partitions)
        if known:
            accepted.append(OffsetDeleteRequest.Topic(name=topic.name, partitions=known))
        if unknown:
            errors = [_Topic.Partition(partition_index=one.partition_index, error_code=error) for one in unknown]
            refused.append(_Topic(name=topic.name, partitions=errors))
    requested = OffsetDeleteRequest(group_id=request.group_id, topics=accepted)
    done = context.broker.groups.submit(
        request.group_id, lambda shard, now, reply: shard.offsets.delete(requested, reply), _refuse
    )

    def merged(response: OffsetDeleteResponse) -> OffsetDeleteResponse:
        if not response.error_code:
            TopicMerger(response.topics).add(refused)
        return response

    return map_reply(done, merged)


def _refuse(code: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=code)
