"""What tests write and read through other clients."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import Producer

from kohort.client import Record

from ..topics import read_partitions


def write(bootstrap: str, topic: str, values: Mapping[int, Sequence[bytes | None]], **settings: Any) -> None:
    """Values into partitions, with librdkafka."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1} | settings)
    errors: list[object] = []
    # Of each partition the first on its own, or Apache Kafka may lose it: see Feeder.
    for part in (slice(1), slice(1, None)):
        for partition, each in values.items():
            for value in each[part]:
                producer.produce(
                    topic,
                    value,
                    partition=partition,
                    on_delivery=lambda error, _: errors.append(error) if error else None,
                )
                producer.poll(0)
        assert producer.flush(30) == 0
    assert not errors, errors[0]


def numbered(partitions: int, count: int, first: int = 0) -> dict[int, list[bytes]]:
    """So many numbers for each partition."""
    return {partition: [b"%d" % n for n in range(first, first + count)] for partition in range(partitions)}


async def take(records: AsyncIterable[Record], count: int) -> list[Record]:
    """The next so many records."""
    found: list[Record] = []
    if count:
        async for record in records:
            found.append(record)
            if len(found) == count:
                break
    return found


def by_partition(records: Iterable[Record]) -> dict[int, list[Any]]:
    """The values, in the order they came."""
    found: dict[int, list[Any]] = defaultdict(list)
    for record in records:
        found[record.partition].append(record.value)
    return dict(found)


__all__ = ["by_partition", "numbered", "read_partitions", "take", "write"]
