"""Metadata: the one broker, and topics; requested topics may be created (auto.create.topics.enable)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.topics import MAX_PARTITIONS_AT_ONCE, Topic, check_topic_name
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kohort.protocol.schema import NO_UUID

SERVED: Final = Served(MetadataRequest, versions=(0, 13))

_TopicMetadata = MetadataResponse.Topic

T = TypeVar("T")

NULL_IS_ALL: Final = 1
"""First version in which null asks for all topics, and an empty list for none."""
BY_ID: Final = 12
"""First version with topic ids in requests; before, names can't be null in responses."""


def handle(request: MetadataRequest, context: Context) -> Slices[MetadataResponse]:
    """Describes the requested topics, or all that the client may describe."""
    broker = context.broker
    requested = request.topics
    if requested is None or (context.version < NULL_IS_ALL and not requested):
        visible = [
            topic
            for topic in broker.topics
            if context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, topic.name, audited=False)
        ]
        topics = yield from _each(lambda topic: _described(topic, request, context), visible)
    elif context.version < BY_ID and any(topic.name is None or topic.topic_id != NO_UUID for topic in requested):
        topics = [
            _TopicMetadata(error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id)
            for topic in requested
        ]
    else:
        # Once each: repeated topics could make the response many times as large as the request.
        distinct = {topic.name if topic.topic_id == NO_UUID else topic.topic_id: topic for topic in requested}.values()
        absent = sum(topic.name is not None and broker.topics.get(topic.name) is None for topic in distinct)
        create = request.allow_auto_topic_creation and absent > 0 and broker.config.flag("auto.create.topics.enable")
        if create and absent * broker.config.int("num.partitions") > MAX_PARTITIONS_AT_ONCE:
            create = False
        topics = yield from _each(lambda topic: _requested_topic(topic, request, create, context), distinct)
    host, port = context.session.advertised
    response = MetadataResponse(
        brokers=[MetadataResponse.Broker(node_id=broker.node_id, host=host, port=port, rack=broker.rack)],
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = context.cluster_operations()
    return response


def _each(describe: Callable[[T], Slices[_TopicMetadata]], topics: Iterable[T]) -> Slices[list[_TopicMetadata]]:
    described = []
    for topic in topics:
        one = yield from describe(topic)
        described.append(one)
    return described


def _requested_topic(
    requested: MetadataRequest.Topic, request: MetadataRequest, create: bool, context: Context
) -> Slices[_TopicMetadata]:
    yield
    broker = context.broker
    if requested.topic_id != NO_UUID:
        topic = broker.topics.by_id(requested.topic_id)
        if topic is None:
            return _failed(ErrorCode.UNKNOWN_TOPIC_ID, requested)
        if not context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
            return _failed(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED, requested
            )  # without the name, which the client may not learn
        return (yield from _described(topic, request, context))
    name = requested.name
    if name is None:
        return _failed(ErrorCode.INVALID_REQUEST, requested)
    if not context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, name):
        return _failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, requested)
    topic = broker.topics.get(name)
    if topic is None:
        if not create:
            try:
                check_topic_name(name)
            except KafkaError as error:
                return _failed(error.code, requested)
            return _failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, requested)
        if not context.may_create_topic(name):
            return _failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, requested)
        try:
            check_topic_name(name)
            context.mutate(broker.config.int("num.partitions"), strict_since=0)
            topic = broker.auto_topic_creation.create(name)
        except KafkaError as error:
            over_quota = error.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
            return _failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if over_quota else error.code, requested)
    return (yield from _described(topic, request, context))


def _failed(code: ErrorCode, requested: MetadataRequest.Topic) -> _TopicMetadata:
    return _TopicMetadata(error_code=code, name=requested.name, topic_id=requested.topic_id, partitions=[])


def _described(topic: Topic, request: MetadataRequest, context: Context) -> Slices[_TopicMetadata]:
    node = (context.broker.node_id,)
    metadata = _TopicMetadata(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=[],
    )
    for number, partition in enumerate(list(topic.partitions)):
        metadata.partitions.append(
            _TopicMetadata.Partition(
                partition_index=partition.index,
                leader_id=context.broker.node_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=node,
                isr_nodes=node,
                offline_replicas=() if partition.offline is None else node,
            )
        )
        if number % 8 == 0:  # it takes less than a microsecond
            yield
    if request.include_topic_authorized_operations:
        metadata.topic_authorized_operations = context.operations(ResourceType.TOPIC, topic.name)
    return metadata
