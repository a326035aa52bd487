"""As librdkafka_member: Kohort's own consumer."""

from __future__ import annotations

import asyncio

from events import Terminated, options, say

from kohort.client import Consumer, TopicPartition
from kohort.client.errors import CommitFailedError
from kohort.protocol.errors import KafkaError

wanted = options()
terminated = Terminated()
pending: dict[TopicPartition, int] = {}


async def commit(consumer: Consumer) -> None:
    if not pending:
        return
    offsets = dict(pending)
    try:
        await consumer.commit(offsets)
    except (CommitFailedError, KafkaError) as error:
        say("commit failed", error=str(error))
        return
    say("committed", offsets={partition.partition: offset for partition, offset in offsets.items()})
    for partition, offset in offsets.items():
        if pending.get(partition) == offset:
            del pending[partition]


async def main() -> None:
    consumer = Consumer(
        wanted.bootstrap,
        group_id=wanted.group,
        group_instance_id=wanted.instance,
        group_protocol=wanted.protocol,
        partition_assignment_strategy=(wanted.strategy,),
        session_timeout_ms=wanted.session_timeout,
        heartbeat_interval_ms=300,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=50,
    )
    owned: list[int] = []

    def tell(event: str, partitions: set[TopicPartition]) -> None:
        say(event, partitions=sorted(each.partition for each in partitions))

    async def revoked(partitions: set[TopicPartition]) -> None:
        await commit(consumer)
        for each in partitions:
            pending.pop(each, None)
        tell("revoked", partitions)

    def lost(partitions: set[TopicPartition]) -> None:
        pending.clear()
        tell("lost", partitions)

    async with consumer:
        consumer.subscribe(
            wanted.topic, on_assign=lambda partitions: tell("assigned", partitions), on_revoke=revoked, on_lost=lost
        )
        while not terminated:
            try:
                records = await consumer.poll(timeout_ms=50)
            except Exception as error:
                say("error", error=type(error).__name__, text=str(error))
                await asyncio.sleep(0.05)
                continue
            if (now := sorted(each.partition for each in consumer.assignment())) != owned:
                owned = now
                say("owns", partitions=owned)
            for record in records:
                say("read", partition=record.partition, offset=record.offset)
                pending[TopicPartition(record.topic, record.partition)] = record.offset + 1
            await commit(consumer)
        await commit(consumer)
    say("closed")


asyncio.run(main())
