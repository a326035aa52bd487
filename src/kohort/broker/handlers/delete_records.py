"""DeleteRecords: advances the log start offset of partitions."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

SERVED: Final = Served(DeleteRecordsRequest, versions=(0, 2))

TO_HIGH_WATERMARK: Final = -1
NO_LOW_WATERMARK: Final = -1

Topic = DeleteRecordsResponse.Topic


def handle(request: DeleteRecordsRequest, context: Context) -> Slices[DeleteRecordsResponse]:
    """Advances each partition's log start offset; it never goes back."""
    # The last offset counts for a repeated partition.
    wanted: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        yield
        wanted.setdefault(topic.name, {}).update({each.partition_index: each.offset for each in topic.partitions})
    response = DeleteRecordsResponse(topics=[])
    for name, offsets in wanted.items():
        yield
        outcome = Topic(name=name, partitions=[])
        response.topics.append(outcome)
        for index, offset in offsets.items():
            outcome.partitions.append(_outcome(name, index, offset, context))
            yield
    return response


def _outcome(topic: str, index: int, offset: int, context: Context) -> Topic.Partition:
    try:
        start = _delete_records(topic, index, offset, context)
    except KafkaError as error:
        return Topic.Partition(partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=error.code)
    return Topic.Partition(partition_index=index, low_watermark=start)


def _delete_records(name: str, index: int, offset: int, context: Context) -> int:
    """Returns the new log start offset."""
    if not context.allowed(Operation.DELETE, ResourceType.TOPIC, name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = context.broker.topics.online_partition(name, index)
    if partition.topic.internal:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    log = partition.log
    if not log.config.delete:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    return log.delete_records(log.high_watermark if offset == TO_HIGH_WATERMARK else offset)
