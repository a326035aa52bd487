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
        error = ErrorCode.NONE
        if not context.allowed(Operation.READ, ResourceType.TOPIC, topic.name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif context.broker.topics.get(topic.name) is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if error:
            refused.append(
                _Topic(
                    name=topic.name,
                    partitions=[
                        _Topic.Partition(partition_index=partition.partition_index, error_code=error)
                        for partition in topic.partitions
                    ],
                )
            )
        else:
            accepted.append(topic)
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
    if not response.error_code:
        response.topics.extend(refused)
    return response


def _refuse(code: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=code)
