"""Topics for tests, and all that is in them."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


def create_topic(admin: AdminClient, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
    new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(configs or {}))
    admin.create_topics([new])[name].result(20)
    return name


def numbers(ends: Mapping[int, int]) -> dict[int, list[bytes]]:
    """What a Feeder has written: the numbers from 0 to each partition's end."""
    return {partition: [b"%d" % number for number in range(end)] for partition, end in ends.items()}


def read_partitions(bootstrap: str, topic: str, partitions: int) -> dict[int, list[bytes | None]]:
    """All values in each partition, of committed transactions."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found: dict[int, list[bytes | None]] = {partition: [] for partition in range(partitions)}
    at_end: set[int] = set()
    while len(at_end) < partitions:
        message = consumer.poll(20)
        assert message is not None, "nothing to read, and no end either"
        error = message.error()
        if error is None:
            found[message.partition()].append(message.value())
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            at_end.add(message.partition())
    consumer.close()
    return found
