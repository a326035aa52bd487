"""Reads a topic as a member of a group and writes each record to another, offsets and outputs in one transaction."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from events import Terminated, options, say

wanted = options()
terminated = Terminated()
producer = Producer(
    {
        "bootstrap.servers": wanted.bootstrap,
        "transactional.id": wanted.transactional_id,
        "transaction.timeout.ms": 30_000,
        # With rebootstrap, the default, librdkafka 2.16 hangs in the transaction that was open when its only broker
        # went away: it sends the offsets to a coordinator that it has dropped.
        "metadata.recovery.strategy": "none",
        "reconnect.backoff.max.ms": 200,
        "linger.ms": 1,
    }
)
consumer = Consumer(
    {
        "bootstrap.servers": wanted.bootstrap,
        "group.id": wanted.group,
        "partition.assignment.strategy": wanted.strategy,
        "session.timeout.ms": wanted.session_timeout,
        "heartbeat.interval.ms": 300,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 50,
        "reconnect.backoff.max.ms": 200,
    }
)
owned: list[int] = []
pending: list[Message] = []


def persist(step: Callable[..., None], *arguments: object) -> None:
    """Again, while it may be tried again: librdkafka takes up a step where it was."""
    while True:
        try:
            return step(*arguments)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


def transfer() -> None:
    """All or nothing: where the transaction fails, back to what is committed."""
    if not pending:
        return
    try:
        producer.begin_transaction()
        offsets: dict[int, int] = {}
        for message in pending:
            producer.produce(wanted.target, message.value(), partition=message.partition())
            offsets[message.partition()] = message.offset() + 1
        positions = [TopicPartition(wanted.topic, partition, offset) for partition, offset in offsets.items()]
        persist(producer.send_offsets_to_transaction, positions, consumer.consumer_group_metadata(), 20)
        persist(producer.commit_transaction, 20)
        say("committed", offsets=offsets)
    except KafkaException as error:
        say("aborted", error=error.args[0].name())
        if not error.args[0].txn_requires_abort():
            raise
        persist(producer.abort_transaction, 20)
        for position in consumer.committed(consumer.assignment(), 20):
            consumer.seek(TopicPartition(wanted.topic, position.partition, max(position.offset, 0)))
    pending.clear()


def given_up(*_: object) -> None:
    pending.clear()  # nothing of it is written: the next owner begins with it


producer.init_transactions(20)
consumer.subscribe([wanted.topic], on_revoke=given_up, on_lost=given_up)
while not terminated:
    message = consumer.poll(0.05)
    if (now := sorted(p.partition for p in consumer.assignment())) != owned:
        owned = now
        say("owns", partitions=owned)
    if message is not None and not message.error():
        pending.append(message)
    if message is None or len(pending) >= 20:
        transfer()
transfer()
consumer.close()
say("closed")
