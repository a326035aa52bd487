"""aiokafka."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from benchmarks.client.clients.face import BATCH, TIMEOUT, Clock

PRODUCER = {"acks": "all", "linger_ms": 5, "max_batch_size": 131_072}
"""Its own batches of 16 KiB are smaller than those of the others, which makes it slower."""


def load() -> None:
    """Nothing is loaded later than on import."""


def run(work: Coroutine[Any, Any, None]) -> None:
    uvloop.run(asyncio.wait_for(work, TIMEOUT))


def produce(bootstrap: str, topic: str, values: Sequence[bytes], clock: Clock) -> None:
    async def work() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, **PRODUCER) as producer:
            await producer.partitions_for(topic)
            clock.start()
            for value in values:
                await producer.send(topic, value)
            await producer.flush()
            clock.stop()

    run(work())


def produce_batch(bootstrap: str, topic: str, values: Sequence[bytes], clock: Clock) -> None:
    async def work() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, **PRODUCER) as producer:
            partitions = sorted(await producer.partitions_for(topic))
            clock.start()
            number, builder = 0, producer.create_batch()
            for value in values:
                if builder.append(key=None, value=value, timestamp=None) is None:
                    await producer.send_batch(builder, topic, partition=partitions[number % len(partitions)])
                    number, builder = number + 1, producer.create_batch()
                    builder.append(key=None, value=value, timestamp=None)
            await producer.send_batch(builder, topic, partition=partitions[number % len(partitions)])
            await producer.flush()
            clock.stop()

    run(work())


def reader(bootstrap: str, topic: str) -> AIOKafkaConsumer:
    """Without a group, it takes all partitions."""
    return AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")


def consume(bootstrap: str, topic: str, number: int, clock: Clock) -> None:
    async def work() -> None:
        async with reader(bootstrap, topic) as consumer:
            clock.start()
            left = number
            async for record in consumer:
                assert record.value
                left -= 1
                if not left:
                    break
            clock.stop()

    run(work())


def consume_batch(bootstrap: str, topic: str, number: int, clock: Clock) -> None:
    async def work() -> None:
        async with reader(bootstrap, topic) as consumer:
            clock.start()
            left = number
            while left > 0:
                for records in (await consumer.getmany(timeout_ms=1000, max_records=BATCH)).values():
                    left -= len(records)
            clock.stop()

    run(work())


def first_record(bootstrap: str, topic: str, group: str, clock: Clock) -> None:
    async def work() -> None:
        clock.start()
        async with AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest"
        ) as consumer:
            assert (await consumer.getone()).value
            clock.stop()

    run(work())


def idle(bootstrap: str, topic: str, group: str, members: int, seconds: float, clock: Clock) -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            starting = [AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group) for _ in range(members)]
            # One that starts waits until it has joined, so they start together.
            consumers = await asyncio.gather(*(stack.enter_async_context(consumer) for consumer in starting))
            polling = [asyncio.create_task(consumer.getone()) for consumer in consumers]
            while any(len(consumer.assignment()) != 1 for consumer in consumers):
                await asyncio.sleep(0.1)
            await asyncio.sleep(3)
            clock.start()
            await asyncio.sleep(seconds)
            clock.stop()
            for task in polling:
                task.cancel()
            await asyncio.wait(polling)

    run(work())
