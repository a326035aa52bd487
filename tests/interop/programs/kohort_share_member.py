"""As librdkafka_share_member: Kohort's own share consumer."""

from __future__ import annotations

import asyncio

from events import Terminated, options, say
from share_choices import ACCEPTED, REJECTED, RELEASED, choice

from kohort.client import AcknowledgeType, ShareConsumer, TopicPartition
from kohort.client.errors import ClientError
from kohort.protocol.errors import KafkaError

TYPES = {ACCEPTED: AcknowledgeType.ACCEPT, RELEASED: AcknowledgeType.RELEASE, REJECTED: AcknowledgeType.REJECT}
wanted = options()
terminated = Terminated()


async def step(consumer: ShareConsumer) -> None:
    chosen = []
    for record in await consumer.poll(timeout_ms=100):
        how = choice(record.offset, record.delivery_count)
        say("received", partition=record.partition, offset=record.offset, count=record.delivery_count)
        consumer.acknowledge(record, TYPES[how])
        chosen.append((record.partition, record.offset, how))
    outcome = await consumer.commit(timeout_ms=10_000)
    for partition, offset, how in chosen:
        error = outcome.get(TopicPartition(wanted.topic, partition))
        if error is None:
            say("settled", partition=partition, offset=offset, how=how)
        else:
            say("refused", partition=partition, offset=offset, error=str(error))


async def main() -> None:
    async with ShareConsumer(
        wanted.bootstrap,
        group_id=wanted.group,
        share_acknowledgement_mode="explicit",
        max_poll_records=20,
        fetch_max_wait_ms=50,
    ) as consumer:
        consumer.subscribe(wanted.topic)
        while not terminated:
            try:
                await step(consumer)
            except (ClientError, KafkaError) as error:
                say("error", error=type(error).__name__, text=str(error))
    say("closed")


asyncio.run(main())
