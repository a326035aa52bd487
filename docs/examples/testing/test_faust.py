"""Faust against the session's broker: an agent in the test's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import faust

from kohort.testing import Broker


def test_an_agent_reads_the_orders(kohort_broker: Broker, kohort_topic: Callable[..., str]) -> None:
    """It ends when the agent has read both."""
    topic = kohort_topic([{"id": 1, "item": "tea"}, {"id": 2, "item": "cups"}])

    async def run() -> list[str]:
        app = faust.App(
            topic, broker=f"kafka://{kohort_broker.bootstrap_servers}", store="memory://", topic_partitions=1,
            topic_disable_leader=True, web_enabled=False,
        )  # fmt: skip
        items: list[str] = []
        done = asyncio.Event()

        @app.agent(app.topic(topic))
        async def collect(orders: Any) -> None:
            async for order in orders:
                items.append(order["item"])
                if len(items) == 2:
                    done.set()

        await app.start()
        try:
            await asyncio.wait_for(done.wait(), 60)
        finally:
            await app.stop()
        return items

    assert asyncio.run(run()) == ["tea", "cups"]
