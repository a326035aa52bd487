"""Look-up of the partition that a request names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kohort.broker.context import Context
    from kohort.broker.topics import Partition

__all__ = ["hosted_partition"]


def hosted_partition(context: Context, topic: str, index: int) -> Partition:
    """Returns a partition whose log is online.

    Raises:
        KafkaError: UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR while its log is offline.
    """
    partition = context.broker.topics.partition(topic, index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}.")
    if partition.offline is not None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Partition {partition} is offline: {partition.offline}")
    return partition
