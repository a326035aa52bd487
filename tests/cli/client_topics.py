"""Topics of a test's broker, made, filled and read with confluent-kafka: our own client isn't its own witness."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


class Read(NamedTuple):
    """A record as it was read."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class Topics:
    """A broker's topics."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._numbers = count()
        self._settings = {"bootstrap.servers": bootstrap, "log_level": 3, "logger": logging.getLogger("librdkafka")}

    def create(self, topic: str, partitions: int = 1) -> str:
        admin = AdminClient(self._settings)
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(20)
        return topic

    def create_one(self, partitions: int = 1) -> str:
        """A topic of a name of its own."""
        return self.create(f"topic-{next(self._numbers)}", partitions)

    def names(self) -> set[str]:
        return set(AdminClient(self._settings).list_topics(timeout=20).topics)

    def write(
        self,
        topic: str,
        values: Sequence[bytes | None],
        *,
        key: bytes | None = None,
        partition: int = 0,
        timestamp: int = 0,
        headers: list[tuple[str, bytes]] | None = None,
    ) -> None:
        producer = Producer(self._settings)
        for value in values:
            producer.produce(topic, value, key, partition, timestamp=timestamp, headers=headers or [])
        assert not producer.flush(20)

    def write_aborted(self, topic: str, values: Sequence[bytes]) -> None:
        producer = Producer(self._settings | {"transactional.id": f"tx-{topic}"})
        producer.init_transactions(20)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        producer.flush(20)
        producer.abort_transaction(20)

    def read(self, topic: str) -> list[Read]:
        """All records, partition by partition."""
        consumer = Consumer(self._settings | {"group.id": "reader", "enable.auto.commit": False})
        try:
            found = []
            for number in sorted(consumer.list_topics(topic, 20).topics[topic].partitions):
                place = TopicPartition(topic, number, OFFSET_BEGINNING)
                first, end = consumer.get_watermark_offsets(place, 20)
                consumer.assign([place])
                left = end - first
                while left:
                    messages = consumer.consume(min(left, 10_000), 20)
                    assert messages
                    left -= len(messages)
                    found += [
                        Read(m.partition(), m.offset(), m.timestamp()[1], m.key(), m.value(), m.headers() or [])
                        for m in messages
                    ]
            return found
        finally:
            consumer.close()

    def committed(self, group: str, topic: str, partition: int = 0) -> int:
        """The group's offset, -1001 for none."""
        consumer = Consumer(self._settings | {"group.id": group})
        try:
            return consumer.committed([TopicPartition(topic, partition)], 20)[0].offset
        finally:
            consumer.close()
