"""OffsetCommit: a group says how far it has read."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.offset_requests import merge_topics
from kohort.broker.reply import Reply, map_reply
from kohort.coordinator.offsets import commit_refused
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kohort.protocol.schema import NO_UUID

_Topic = OffsetCommitResponse.Topic

BY_ID: Final = 10
"""First version that names topics by id."""
LONGEST_MS: Final = 2**62
"""What a retention is cut to, so that the time at which it is over is a number that can be stored."""


def handle(request: OffsetCommitRequest, context: Context) -> OffsetCommitResponse | Reply[OffsetCommitResponse]:
    """Have the coordinator store the offsets of partitions that exist and may be read; the others get their errors."""
    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return _shaped(commit_refused(request, ErrorCode.GROUP_AUTHORIZATION_FAILED), context)
    topics = context.broker.topics
    answers: list[_Topic] = []
    accepted: list[OffsetCommitRequest.Topic] = []
    for asked in request.topics:
        if context.version >= BY_ID:
            topic = topics.by_id(asked.topic_id)
            error = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = topics.get(asked.name)
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not context.allowed(Operation.READ, ResourceType.TOPIC, topic.name if topic else asked.name):
            topic = None
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        known, unknown = [], []
        for partition in asked.partitions:
            if topic is not None and topic.partition(partition.partition_index) is not None:
                known.append(partition)
            else:
                unknown.append(partition)
        name = topic.name if topic is not None else asked.name
        if unknown:
            code = error if topic is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            answers.append(
                _Topic(
                    name=name,
                    topic_id=asked.topic_id,
                    partitions=[
                        _Topic.Partition(partition_index=partition.partition_index, error_code=code)
                        for partition in unknown
                    ],
                )
            )
        if known and topic is not None:
            accepted.append(OffsetCommitRequest.Topic(name=name, topic_id=topic.id, partitions=known))
    if not accepted:
        return _shaped(OffsetCommitResponse(topics=answers), context)
    asked_of_group = OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time_ms=min(request.retention_time_ms, LONGEST_MS),
        topics=accepted,
    )
    done = context.broker.groups.submit(
        request.group_id,
        lambda shard, now, reply: shard.offsets.commit(asked_of_group, context.client, now, reply),
        lambda code: commit_refused(asked_of_group, code),
    )

    def whole(response: OffsetCommitResponse) -> OffsetCommitResponse:
        merge_topics(response.topics, answers)
        return _shaped(response, context)

    return map_reply(done, whole)


def _shaped(response: OffsetCommitResponse, context: Context) -> OffsetCommitResponse:
    """With ids or with names, as the version has them."""
    for topic in response.topics:
        if context.version >= BY_ID:
            topic.name = ""
        else:
            topic.topic_id = NO_UUID
    return response
