"""DescribeTopicPartitions: topics with their partitions, page by page (KIP-966)."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import OPERATIONS_NOT_REQUESTED, Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.topics import Partition, check_topic_name
from kohort.broker.topics import Topic as TopicState
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

SERVED: Final = Served(DescribeTopicPartitionsRequest, versions=(0, 0), max_items=ONE_STEP)

Topic = DescribeTopicPartitionsResponse.Topic
NextCursor = DescribeTopicPartitionsResponse.NextCursor


def handle(request: DescribeTopicPartitionsRequest, context: Context) -> DescribeTopicPartitionsResponse:
    """Returns a page of at most `max.request.partition.size.limit` partitions, ordered by topic and partition.

    Named topics that the client may not describe are at the end of every page.
    """
    cursor = request.cursor
    start = "" if cursor is None else cursor.topic_name
    named = sorted({topic.name for topic in request.topics})
    if cursor is not None and (cursor.partition_index < 0 or (named and start not in named)):
        return DescribeTopicPartitionsResponse(topics=[_failed(name, ErrorCode.INVALID_REQUEST) for name in named])
    names = [name for name in named or [topic.name for topic in context.broker.topics] if name >= start]
    allowed = {
        name: None
        for name in names
        if context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, name, audited=bool(named))
    }
    limit = context.broker.config.int("max.request.partition.size.limit")
    room = max(1, min(request.response_partition_limit, limit))
    topics: list[Topic] = []
    next_cursor = None
    for name in allowed:
        if room == 0:
            next_cursor = NextCursor(topic_name=name, partition_index=0)
            break
        found = context.broker.topics.get(name)
        if found is None:
            if named:
                topics.append(_missing(name, context))
            continue
        first = cursor.partition_index if cursor is not None and name == start else 0
        page = found.partitions[first : first + room]
        topics.append(_described(found, page, context))
        if first + len(page) < len(found.partitions):
            next_cursor = NextCursor(topic_name=name, partition_index=first + len(page))
            break
        room -= len(page)
    if named:
        topics += [_failed(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in names if name not in allowed]
    return DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)


def _described(topic: TopicState, page: list[Partition], context: Context) -> Topic:
    return Topic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=[_partition(partition, context.broker.node_id) for partition in page],
        topic_authorized_operations=context.operations(ResourceType.TOPIC, topic.name),
    )


def _partition(partition: Partition, node_id: int) -> Topic.Partition:
    offline = partition.offline is not None
    return Topic.Partition(
        partition_index=partition.index,
        leader_id=-1 if offline else node_id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=(node_id,),
        isr_nodes=(node_id,),
        eligible_leader_replicas=(),
        last_known_elr=(),
        offline_replicas=(node_id,) if offline else (),
    )


def _missing(name: str, context: Context) -> Topic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
    except KafkaError as error:
        code = error.code
    return Topic(name=name, error_code=code, topic_authorized_operations=context.operations(ResourceType.TOPIC, name))


def _failed(name: str, code: ErrorCode) -> Topic:
    return Topic(name=name, error_code=code, topic_authorized_operations=OPERATIONS_NOT_REQUESTED)
