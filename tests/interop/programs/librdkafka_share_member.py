"""A member of a share group: tells what it receives, and what became of it once the broker has answered."""

from __future__ import annotations

from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer
from events import Terminated, options, say
from share_choices import ACCEPTED, REJECTED, RELEASED, choice

TYPES = {ACCEPTED: AcknowledgeType.ACCEPT, RELEASED: AcknowledgeType.RELEASE, REJECTED: AcknowledgeType.REJECT}
wanted = options()
terminated = Terminated()
consumer = ShareConsumer(
    {
        "bootstrap.servers": wanted.bootstrap,
        "group.id": wanted.group,
        "share.acknowledgement.mode": "explicit",
        "max.poll.records": 20,
        "fetch.wait.max.ms": 50,
        "reconnect.backoff.max.ms": 200,
    }
)
consumer.subscribe([wanted.topic])


def step() -> None:
    chosen = []
    for message in consumer.poll(0.1):
        if message.error():
            say("error", error=message.error().name(), text=message.error().str())
            continue
        count = message.delivery_count()
        how = choice(message.offset(), count)
        say("received", partition=message.partition(), offset=message.offset(), count=count)
        consumer.acknowledge(message, TYPES[how])
        chosen.append((message.partition(), message.offset(), how))
    refused = {where.partition: str(error) for where, error in consumer.commit_sync(10.0).items() if error is not None}
    for partition, offset, how in chosen:
        if partition in refused:
            say("refused", partition=partition, offset=offset, error=refused[partition])
        else:
            say("settled", partition=partition, offset=offset, how=how)


while not terminated:
    try:
        step()
    except KafkaException as error:
        say("error", error=str(error))
consumer.close()
say("closed")
