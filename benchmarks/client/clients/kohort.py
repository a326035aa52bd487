"""Kohort's own client."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any

import uvloop

from benchmarks.client.clients.face import BATCH, TIMEOUT, Clock
from kohort.client import Consumer, Producer, TopicPartition
from kohort.client.column_codec import load_columns


def load() -> None:
    """Wait for what a process that has run for a while has loaded in the background: the compiled kernels."""
    load_columns().result()


def run(work: Coroutine[Any, Any, None]) -> None:
    uvloop.run(asyncio.wait_for(work, TIMEOUT))


def produce(bootstrap: str, topic: str, values: Sequence[bytes], clock: Clock) -> None:
    async def work() -> None:
        async with Producer(bootstrap) as producer:
            clock.start()
            for value in values:
                await producer.send(topic, value)
            await producer.flush()
            clock.stop()

    run(work())


def produce_batch(bootstrap: str, topic: str, values: Sequence[bytes], clock: Clock) -> None:
    import pyarrow as pa  # not while a start is measured

    table = pa.table({"value": pa.array(values, pa.binary())})

    async def work() -> None:
        async with Producer(bootstrap) as producer:
            clock.start()
            for start in range(0, table.num_rows, BATCH):
                await producer.send_table(topic, table.slice(start, BATCH))
            await producer.flush()
            clock.stop()

    run(work())


async def assigned(consumer: Consumer, topic: str) -> None:
    consumer.assign([TopicPartition(topic, info.partition) for info in await consumer.partitions_for(topic)])


def consume(bootstrap: str, topic: str, number: int, clock: Clock) -> None:
    async def work() -> None:
        async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
            await assigned(consumer, topic)
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
        async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
            await assigned(consumer, topic)
            clock.start()
            left = number
            async for batch in consumer.batches():
                left -= batch.num_rows
                if left <= 0:
                    break
            clock.stop()

    run(work())


def first_record(bootstrap: str, topic: str, group: str, clock: Clock) -> None:
    async def work() -> None:
        clock.start()
        async with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
            consumer.subscribe(topic)
            async for record in consumer:
                assert record.value
                clock.stop()
                break

    run(work())


def idle(bootstrap: str, topic: str, group: str, members: int, seconds: float, clock: Clock) -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            consumers = []
            for _ in range(members):
                consumer = await stack.enter_async_context(Consumer(bootstrap, group_id=group))
                consumer.subscribe(topic)
                consumers.append(consumer)
            polling = [asyncio.create_task(_wait_for_record(consumer)) for consumer in consumers]
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


async def _wait_for_record(consumer: Consumer) -> None:
    async for _ in consumer:
        raise AssertionError("the topic should be empty")
