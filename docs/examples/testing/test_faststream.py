"""FastStream against the session's broker: it reads a topic that the test has filled, and publishes into another."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer
from faststream.kafka import KafkaBroker

from kohort.testing import Broker


def billing(servers: str, orders: str, bills: str) -> KafkaBroker:
    """What is to be tested: each order becomes a bill."""
    broker = KafkaBroker(servers)

    @broker.subscriber(orders, group_id="billing", auto_offset_reset="earliest")
    @broker.publisher(bills)
    async def bill(order: dict[str, Any]) -> dict[str, Any]:
        return {"id": order["id"], "total": order["count"] * order["price"]}

    return broker


async def first(servers: str, topic: str, count: int) -> list[Any]:
    """The first values of a topic."""
    async with AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        return [json.loads((await consumer.getone()).value or b"") for _ in range(count)]


def test_orders_become_bills(kohort_broker: Broker, kohort_topic: Callable[..., str]) -> None:
    """Two orders, and no waiting beside the application's own."""
    servers = kohort_broker.bootstrap_servers
    orders = kohort_topic([{"id": 1, "count": 2, "price": 3}, {"id": 2, "count": 1, "price": 5}])
    bills = kohort_topic()

    async def run() -> list[Any]:
        async with billing(servers, orders, bills) as broker:
            await broker.start()
            return await asyncio.wait_for(first(servers, bills, 2), 60)

    assert asyncio.run(run()) == [{"id": 1, "total": 6}, {"id": 2, "total": 5}]
