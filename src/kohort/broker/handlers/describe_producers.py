"""DescribeProducers: the producer state of partitions (KIP-664)."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.topics import check_topic_name
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse

SERVED: Final = Served(DescribeProducersRequest, versions=(0, 0))

Topic = DescribeProducersResponse.Topic


def handle(request: DescribeProducersRequest, context: Context) -> Slices[DescribeProducersResponse]:
    """Describes each partition once: repeated ones could make the response many times as large as the request."""
    response = DescribeProducersResponse(topics=[])
    for name, indexes in {topic.name: topic.partition_indexes for topic in request.topics}.items():
        yield
        topic = Topic(name=name, partitions=[])
        response.topics.append(topic)
        for index in dict.fromkeys(indexes):
            topic.partitions.append(_described(name, index, context))
            yield
    return response


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
