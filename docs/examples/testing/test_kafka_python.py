"""kafka-python against a broker that dies: a producer goes on when its broker is back."""

from __future__ import annotations

from kafka import KafkaConsumer, KafkaProducer

from kohort.testing import BrokerProcess


def test_what_was_acknowledged_is_there_after_a_crash(kohort_broker_process: BrokerProcess) -> None:
    """The broker is killed between two records, and keeps its port and its data."""
    servers = kohort_broker_process.bootstrap_servers
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    producer.send("orders", b"tea").get(timeout=30)
    kohort_broker_process.kill()
    kohort_broker_process.start()
    producer.send("orders", b"cups").get(timeout=30)
    producer.close()
    consumer = KafkaConsumer("orders", bootstrap_servers=servers, auto_offset_reset="earliest")
    assert [next(consumer).value, next(consumer).value] == [b"tea", b"cups"]
    consumer.close()
