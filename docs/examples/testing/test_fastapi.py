"""A service of FastAPI that sends orders with aiokafka: its own start and end, and what it answers without a broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError
from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient

from kohort.testing import Broker, BrokerProcess


def service(servers: str, topic: str) -> FastAPI:
    """What is to be tested: an order is taken when it is safely in the topic."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AIOKafkaProducer(bootstrap_servers=servers, request_timeout_ms=1_000) as producer:
            app.state.producer = producer
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders", status_code=202)
    async def order(order: dict[str, Any]) -> dict[str, Any]:
        try:
            await app.state.producer.send_and_wait(topic, json.dumps(order).encode(), key=str(order["id"]).encode())
        except KafkaError as error:
            raise HTTPException(503, "orders aren't taken at the moment") from error
        return {"taken": order["id"]}

    return app


async def first(servers: str, topic: str) -> tuple[bytes | None, Any]:
    """Key and value of a topic's first record."""
    async with AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        record = await consumer.getone()
        return record.key, json.loads(record.value or b"")


def test_an_order_is_in_the_topic(kohort_broker: Broker, kohort_topic: Callable[..., str]) -> None:
    """`with` runs the service's lifespan, as a server would."""
    servers, orders = kohort_broker.bootstrap_servers, kohort_topic()
    with TestClient(service(servers, orders)) as client:
        answer = client.post("/orders", json={"id": 1, "what": "teapot"})
    assert (answer.status_code, answer.json()) == (202, {"taken": 1})
    assert asyncio.run(asyncio.wait_for(first(servers, orders), 60)) == (b"1", {"id": 1, "what": "teapot"})


def test_an_order_is_not_taken_without_a_broker(kohort_broker_process: BrokerProcess) -> None:
    """A broker in a process of its own can be killed."""
    with TestClient(service(kohort_broker_process.bootstrap_servers, "orders")) as client:
        assert client.post("/orders", json={"id": 1}).status_code == 202
        kohort_broker_process.kill()
        assert client.post("/orders", json={"id": 2}).status_code == 503
