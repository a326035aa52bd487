"""confluent-kafka against the session's broker: a service that counts orders, with records and a lagging group."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

from confluent_kafka import Consumer

from kohort.testing import Broker


def count_items(servers: str, topic: str, group: str, wanted: int) -> Counter[str]:
    """What is to be tested: counts the items of so many orders."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    counts: Counter[str] = Counter()
    try:
        while counts.total() < wanted:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                counts[json.loads(message.value() or b"")["item"]] += 1
    finally:
        consumer.close()
    return counts


ORDERS = [{"id": 1, "item": "tea"}, {"id": 2, "item": "cups"}, {"id": 3, "item": "tea"}]


def test_all_orders_are_counted(kohort_broker: Broker, kohort_topic: Callable[..., str]) -> None:
    """A new group begins with the first order."""
    topic = kohort_topic(ORDERS, key="id")
    assert count_items(kohort_broker.bootstrap_servers, topic, topic, 3) == {"tea": 2, "cups": 1}


def test_it_goes_on_where_it_had_been(
    kohort_broker: Broker, kohort_topic: Callable[..., str], kohort_group: Callable[..., str]
) -> None:
    """A group that has read all but one order reads that one."""
    topic = kohort_topic(ORDERS, key="id")
    assert count_items(kohort_broker.bootstrap_servers, topic, kohort_group(topic, behind=1), 1) == {"tea": 1}
