"""confluent-kafka: librdkafka, in C, under a Python face."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from benchmarks.client.clients.face import BATCH, TIMEOUT, Clock

QUIET = {"log_level": 3}
PRODUCER = {**QUIET, "acks": "all", "linger.ms": 5, "queue.buffering.max.messages": 1_000_000}
POLL_EVERY = 1000
"""Records between two looks at what was delivered."""


def load() -> None:
    """Nothing is loaded later than on import."""


def producer(bootstrap: str, topic: str) -> Producer:
    found = Producer({"bootstrap.servers": bootstrap, **PRODUCER})
    found.list_topics(topic, TIMEOUT)
    return found


def flush(producer: Producer) -> None:
    if left := producer.flush(TIMEOUT):
        raise TimeoutError(f"{left} records weren't delivered")


def produce(bootstrap: str, topic: str, values: Sequence[bytes], clock: Clock) -> None:
    sender = producer(bootstrap, topic)
    clock.start()
    for number, value in enumerate(values):
        while True:
            try:
                sender.produce(topic, value)
                break
            except BufferError:
                sender.poll(0.1)
        if not number % POLL_EVERY:
            sender.poll(0)
    flush(sender)
    clock.stop()


def produce_batch(bootstrap: str, topic: str, values: Sequence[bytes], clock: Clock) -> None:
    sender = producer(bootstrap, topic)
    batches = [[{"value": value} for value in values[start : start + BATCH]] for start in range(0, len(values), BATCH)]
    clock.start()
    for batch in batches:
        rest = batch
        while rest := rest[sender.produce_batch(topic, rest) :]:
            sender.poll(0.1)
        sender.poll(0)
    flush(sender)
    clock.stop()


def assigned(bootstrap: str, topic: str) -> Consumer:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False, **QUIET})
    partitions = consumer.list_topics(topic, TIMEOUT).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
    return consumer


def consume(bootstrap: str, topic: str, number: int, clock: Clock) -> None:
    consumer = assigned(bootstrap, topic)
    clock.start()
    left = number
    while left:
        message = consumer.poll(1.0)
        if message is not None:
            assert message.value()
            left -= 1
    clock.stop()
    consumer.close()


def consume_batch(bootstrap: str, topic: str, number: int, clock: Clock) -> None:
    consumer = assigned(bootstrap, topic)
    clock.start()
    left = number
    while left > 0:
        left -= len(consumer.consume(BATCH, 1.0 if left >= BATCH else 0.1))
    clock.stop()
    consumer.close()


def member(bootstrap: str, group: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", **QUIET})


def first_record(bootstrap: str, topic: str, group: str, clock: Clock) -> None:
    clock.start()
    consumer = member(bootstrap, group)
    consumer.subscribe([topic])
    while (message := consumer.poll(1.0)) is None:
        pass
    assert message.value()
    clock.stop()
    consumer.close()


def idle(bootstrap: str, topic: str, group: str, members: int, seconds: float, clock: Clock) -> None:
    consumers = [member(bootstrap, group) for _ in range(members)]
    # Its `assignment` may wait for ever while another thread polls, so its callback tells.
    assigned: dict[int, int] = {}
    for number, consumer in enumerate(consumers):
        consumer.subscribe([topic], on_assign=lambda _, given, number=number: assigned.update({number: len(given)}))

    def poll(consumer: Consumer) -> None:
        while True:
            consumer.poll(1.0)

    for consumer in consumers:
        threading.Thread(target=poll, args=(consumer,), daemon=True).start()
    while list(assigned.values()) != [1] * members:
        time.sleep(0.1)
    time.sleep(3)
    clock.start()
    time.sleep(seconds)
    clock.stop()
    # They aren't closed: one after the other, each in the middle of a rebalance, that takes minutes.
