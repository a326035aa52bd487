"""OffsetDelete: forget offsets of partitions that no member of the group reads."""

from __future__ import annotations

from kohort.broker.context import Context
from kohort.broker.reply import Reply
from kohort.broker.security import Operation, ResourceType
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

_Topic = OffsetDeleteResponse.Topic


def handle(request: OffsetDeleteRequest, context: Context) -> OffsetDeleteResponse | Reply[OffsetDeleteResponse]:
    """Ask the group's coordinator about the topics that may be read and exist; the others have their errors."""
    if not context.allowed(Operation.DELETE, ResourceType.GROUP, request.group_id):
        return _refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused: list[_Topic] = []
    accepted: list[OffsetDeleteRequest.Topic] = []
    for topic in request.topics:
        allowed = context.allowed(Operation.READ, ResourceType.TOPIC, topic.name)
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        known = []
        unknown = []
        for partition in topic.partitions:
            index = partition.partition_index
            if allowed and context.broker.topics.partition(topic.name, index) is not None:
                known.append(partition)
            else:
                unknown.append(_Topic.Partition(partition_index=index, error_code=error))
        if known:
            accepted.append(OffsetDeleteRequest.Topic(name=topic.name, partitions=known))
        if unknown:
            refused.append(_Topic(name=topic.name, partitions=unknown))
    asked = OffsetDeleteRequest(group_id=request.group_id, topics=accepted)
    done = context.broker.groups.submit(
        request.group_id, lambda shard, now, reply: shard.offsets.delete(asked, reply), _refuse
    )
    return done if not refused else _with(done, refused)


def _with(
    done: OffsetDeleteResponse | Reply[OffsetDeleteResponse], refused: list[_Topic]
) -> OffsetDeleteResponse | Reply[OffsetDeleteResponse]:
    if isinstance(done, OffsetDeleteResponse):
        return _merged(done, refused)
    reply: Reply[OffsetDeleteResponse] = Reply()
    done.then(lambda response: reply(_merged(response, refused)))
    return reply


def _merged(response: OffsetDeleteResponse, refused: list[_Topic]) -> OffsetDeleteResponse:
    """The coordinator's answer with those that it wasn't asked about, each topic once."""
    if not response.error_code:
        by_name = {topic.name: topic for topic in response.topics}
        for topic in refused:
            if topic.name in by_name:
                by_name[topic.name].partitions.extend(topic.partitions)
            else:
                response.topics.append(topic)
    return response


def _refuse(code: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=code)
