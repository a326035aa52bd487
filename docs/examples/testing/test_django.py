"""A view of Django that sends orders with confluent-kafka, and the worker beside it that bills them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import django
from confluent_kafka import Consumer, Producer
from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.test import Client
from django.urls import path

from kohort.testing import Broker

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["testserver"], KAFKA_SERVERS="", ORDERS="orders")
django.setup()


def order(request: HttpRequest) -> JsonResponse:
    """What is to be tested: an order is taken when it is safely in the topic."""
    order = json.loads(request.body)
    producer = Producer({"bootstrap.servers": settings.KAFKA_SERVERS, "message.timeout.ms": 10_000})
    failures = []
    producer.produce(settings.ORDERS, request.body, on_delivery=lambda error, _: error and failures.append(error))
    left = producer.flush(15)
    return JsonResponse({"order": order["id"]}, status=503 if failures or left else 202)


urlpatterns = [path("orders", order)]


def bill(count: int) -> list[dict[str, Any]]:
    """So many orders of the topic, as the worker, a management command, has them; it commits what it has billed."""
    consumer = Consumer(
        {
            "bootstrap.servers": settings.KAFKA_SERVERS,
            "group.id": "billing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([settings.ORDERS])
    try:
        billed = [json.loads(message.value()) for message in consumer.consume(count, 60)]
        consumer.commit(asynchronous=False)
        return billed
    finally:
        consumer.close()


def test_orders_are_billed_once(kohort_broker: Broker, kohort_topic: Callable[..., str], monkeypatch: Any) -> None:
    """Two orders by the view; what one worker has billed isn't another's."""
    monkeypatch.setattr(settings, "KAFKA_SERVERS", kohort_broker.bootstrap_servers)
    monkeypatch.setattr(settings, "ORDERS", kohort_topic())
    client = Client()
    for number in (1, 2):
        assert client.post("/orders", {"id": number}, content_type="application/json").status_code == 202
    assert [each["id"] for each in bill(1) + bill(1)] == [1, 2]
