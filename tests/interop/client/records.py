"""What tests write and read through other clients, and how they run Kohort's own."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from confluent_kafka import Producer

from kohort.client import Record

from ..topics import read_partitions

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T], within: float = 60.0) -> T:
    """What a coroutine returns; it must end within so many seconds."""

    async def bounded() -> T:
        async with asyncio.timeout(within):
            return await coroutine

    return asyncio.run(bounded())


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


async def until(condition: Callable[[], Awaitable[bool]], within: float = 30) -> None:
    """Wait until it's true."""
    async with asyncio.timeout(within):
        while not await condition():
            await asyncio.sleep(0.02)


__all__ = ["by_partition", "numbered", "read_partitions", "run", "take", "until", "write"]
