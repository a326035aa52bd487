"""aiokafka in a test's event loop, and the broker's clock moved by a week, so that retention deletes what was sent."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from kohort.testing import Broker


async def send(servers: str, topic: str, *values: bytes) -> None:
    """Sends values one after another."""
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for value in values:
            await producer.send_and_wait(topic, value)


async def first_offset(servers: str, topic: str) -> int:
    """The offset of the first record that is kept."""
    async with AIOKafkaConsumer(bootstrap_servers=servers) as consumer:
        place = TopicPartition(topic, 0)
        return (await consumer.beginning_offsets([place]))[place]


def test_orders_are_kept_for_a_week(kohort_fresh_broker: Broker, kohort_time: Broker) -> None:
    """Kafka's `retention.ms` is seven days."""
    servers = kohort_fresh_broker.bootstrap_servers
    asyncio.run(send(servers, "orders", b"tea", b"cups"))
    kohort_time.advance(timedelta(days=6))
    assert asyncio.run(first_offset(servers, "orders")) == 0
    kohort_time.advance(timedelta(days=2))
    assert asyncio.run(first_offset(servers, "orders")) == 2
