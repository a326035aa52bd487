"""Metadata: the one broker, and the topics that are asked for, which may be created by that."""

from __future__ import annotations

from kohort.broker.context import Context
from kohort.broker.security import CLUSTER_NAME, Operation, ResourceType
from kohort.broker.topics import Topic
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kohort.protocol.schema import NO_UUID

_TopicMetadata = MetadataResponse.Topic


def handle(request: MetadataRequest, context: Context) -> MetadataResponse:
    """Answer for all topics that may be seen, or for those that are named."""
    broker = context.broker
    asked = request.topics
    if asked is None or (context.version == 0 and not asked):
        visible = [
            topic for topic in broker.topics if context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        ]
        topics = [_known(topic, request, context) for topic in visible]
    else:
        topics = [_asked(topic, request, context) for topic in asked]
    response = MetadataResponse(
        brokers=[MetadataResponse.Broker(node_id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack)],
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations and context.allowed(
        Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME
    ):
        response.cluster_authorized_operations = context.operations(ResourceType.CLUSTER, CLUSTER_NAME)
    return response


def _asked(asked: MetadataRequest.Topic, request: MetadataRequest, context: Context) -> _TopicMetadata:
    broker = context.broker
    if asked.topic_id != NO_UUID:
        topic = broker.topics.by_id(asked.topic_id)
        if topic is None:
            return _failed(ErrorCode.UNKNOWN_TOPIC_ID, asked)
        if not context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
            return _failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, asked)  # without the name: it may not be known
        return _known(topic, request, context)
    name = asked.name
    if name is None:
        return _failed(ErrorCode.INVALID_REQUEST, asked)
    if not context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, name):
        return _failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, asked)
    topic = broker.topics.get(name)
    if topic is None:
        if not (request.allow_auto_topic_creation and broker.config.flag("auto.create.topics.enable")):
            try:
                broker.topics.check_new(name, 1)
            except KafkaError as error:
                return _failed(error.code, asked)
            return _failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, asked)
        if not (
            context.allowed(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
            or context.allowed(Operation.CREATE, ResourceType.TOPIC, name)
        ):
            return _failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, asked)
        try:
            topic = broker.create_topic(name)
        except KafkaError as error:
            return _failed(error.code, asked)
    return _known(topic, request, context)


def _failed(code: ErrorCode, asked: MetadataRequest.Topic) -> _TopicMetadata:
    return _TopicMetadata(error_code=code, name=asked.name, topic_id=asked.topic_id, partitions=[])


def _known(topic: Topic, request: MetadataRequest, context: Context) -> _TopicMetadata:
    node = (context.broker.node_id,)
    metadata = _TopicMetadata(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=[
            _TopicMetadata.Partition(
                partition_index=partition.index,
                leader_id=context.broker.node_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=node,
                isr_nodes=node,
            )
            for partition in topic.partitions
        ],
    )
    if request.include_topic_authorized_operations:
        metadata.topic_authorized_operations = context.operations(ResourceType.TOPIC, topic.name)
    return metadata
