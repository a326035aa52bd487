"""DescribeProducers: the producer state of partitions (KIP-664)."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.topics import check_topic_name
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse

SERVED: Final = Served(DescribeProducersRequest, versions=(0, 0))

Topic = DescribeProducersResponse.Topic


def handle(request: DescribeProducersRequest, context: Context) -> DescribeProducersResponse:
    """Describes each partition once: repeated ones could make the response many times as large as the request."""
    return DescribeProducersResponse(
        topics=[
            Topic(
                name=topic.name,
                partitions=[_described(topic.name, index, context) for index in dict.fromkeys(topic.partition_indexes)],
            )
            for topic in {topic.name: topic for topic in request.topics}.values()
        ]
    )


def _described(topic: str, index: int, context: Context) -> Topic.Partition:
    try:
        check_topic_name(topic)
        if not context.allowed(Operation.READ, ResourceType.TOPIC, topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        log = context.broker.topics.online_partition(topic, index).log
    except KafkaError as error:
        return Topic.Partition(partition_index=index, error_code=error.code, error_message=error.detail)
    return Topic.Partition(
        partition_index=index,
        active_producers=[
            Topic.Partition.ActiveProducer(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.first_offset,
            )
            for producer in log.producers()
        ],
    )
