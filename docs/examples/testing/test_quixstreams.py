"""Quix Streams against the session's broker: an application with state runs until it has read what the test wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer
from quixstreams import Application, State

from kohort.testing import Broker


def add(order: dict[str, Any], state: State) -> dict[str, Any]:
    """What is to be tested: the total of each customer's orders."""
    total = state.get("total", 0) + order["price"]
    state.set("total", total)
    return {"customer": order["customer"], "total": total}


def test_totals_are_kept_by_customer(kohort_broker: Broker, kohort_topic: Callable[..., str], tmp_path: Path) -> None:
    """`run` ends with the third record."""
    prices = [("alice", 3), ("bob", 5), ("alice", 4)]
    orders = kohort_topic([{"customer": customer, "price": price} for customer, price in prices], key="customer")
    totals = kohort_topic()
    app = Application(
        broker_address=kohort_broker.bootstrap_servers,
        consumer_group=orders,
        auto_offset_reset="earliest",
        state_dir=tmp_path,
    )
    app.dataframe(app.topic(orders)).apply(add, stateful=True).to_topic(app.topic(totals))
    app.run(count=3, timeout=60)

    consumer = Consumer(
        {"bootstrap.servers": kohort_broker.bootstrap_servers, "group.id": totals, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([totals])
    found = [json.loads(message.value() or b"") for message in consumer.consume(3, 60)]
    consumer.close()
    assert [(each["customer"], each["total"]) for each in found] == [("alice", 3), ("bob", 5), ("alice", 7)]
