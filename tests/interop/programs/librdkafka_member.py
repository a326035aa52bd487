"""A member of a group: reads, and commits what it has read, every ten records and before it gives a partition up."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, TopicPartition
from events import Terminated, options, say

wanted = options()
terminated = Terminated()
pending: dict[int, int] = {}
owned: list[int] = []


def commit() -> None:
    if not pending:
        return
    try:
        offsets = [TopicPartition(wanted.topic, partition, offset) for partition, offset in pending.items()]
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as error:
        say("commit failed", error=str(error))  # again later, if the partitions are still ours
        return
    say("committed", offsets=pending)
    pending.clear()


def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
    say("assigned", partitions=[p.partition for p in partitions])


def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
    commit()
    for each in partitions:
        pending.pop(each.partition, None)
    say("revoked", partitions=[p.partition for p in partitions])


def lost(_: Consumer, partitions: list[TopicPartition]) -> None:
    pending.clear()
    say("lost", partitions=[p.partition for p in partitions])


settings = {
    "bootstrap.servers": wanted.bootstrap,
    "group.id": wanted.group,
    "group.protocol": wanted.protocol,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "fetch.wait.max.ms": 50,
    "reconnect.backoff.max.ms": 200,
}
if wanted.protocol == "classic":
    settings["partition.assignment.strategy"] = wanted.strategy
    settings["session.timeout.ms"] = wanted.session_timeout
    settings["heartbeat.interval.ms"] = 300
consumer = Consumer(settings | ({"group.instance.id": wanted.instance} if wanted.instance else {}))
consumer.subscribe([wanted.topic], on_assign=assigned, on_revoke=revoked, on_lost=lost)
while not terminated:
    message = consumer.poll(0.05)
    if (now := sorted(p.partition for p in consumer.assignment())) != owned:
        owned = now
        say("owns", partitions=owned)
    if message is not None:
        if message.error():
            say("error", error=message.error().name(), text=message.error().str())
            continue
        say("read", partition=message.partition(), offset=message.offset())
        pending[message.partition()] = message.offset() + 1
    if message is None or message.offset() % 10 == 0:
        commit()
commit()
consumer.close()
say("closed")
