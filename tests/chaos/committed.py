"""What an application has put out, read by a client that isn't ours: librdkafka, committed records only."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

__all__ = ["CommittedRecords"]


class CommittedRecords:
    """Records of topics, followed from their beginning."""

    def __init__(self, servers: str, topics: Sequence[str], partitions: int) -> None:
        self._consumer = Consumer({
            "bootstrap.servers": servers, "group.id": f"results-{uuid.uuid4()}", "enable.auto.commit": False,
            "isolation.level": "read_committed", "auto.offset.reset": "earliest", "log_level": 0,
        })  # fmt: skip
        self._consumer.assign([TopicPartition(topic, number, 0) for topic in topics for number in range(partitions)])

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()

    def take(self, seconds: float) -> Iterator[Message]:
        """What has come."""
        for message in self._consumer.consume(10_000, seconds):
            if (error := message.error()) is not None:
                if error.retriable() or error.code() < 0:
                    continue  # the broker is away
                raise KafkaException(error)
            yield message
