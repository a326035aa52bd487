"""A member of a group: reads up to ten records at a time and commits them, no rebalance in between."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError
from events import Terminated, options, say

STRATEGIES = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
wanted = options()
terminated = Terminated()


class Listener(ConsumerRebalanceListener):
    def __init__(self, busy: asyncio.Lock) -> None:
        self.busy = busy

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        async with self.busy:
            say("revoked", partitions=[p.partition for p in revoked])

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        say("owns", partitions=sorted(p.partition for p in assigned))


async def read(consumer: AIOKafkaConsumer) -> None:
    found = await consumer.getmany(timeout_ms=0, max_records=10)
    for records in found.values():
        for record in records:
            say("read", partition=record.partition, offset=record.offset)
    if found:
        offsets = {partition: records[-1].offset + 1 for partition, records in found.items()}
        try:
            await consumer.commit(offsets)
            say("committed", offsets={p.partition: offset for p, offset in offsets.items()})
        except KafkaError as error:
            say("commit failed", error=type(error).__name__)
    else:
        await asyncio.sleep(0.02)


async def main() -> None:
    busy = asyncio.Lock()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=wanted.bootstrap,
        group_id=wanted.group,
        group_instance_id=wanted.instance,
        partition_assignment_strategy=[STRATEGIES[wanted.strategy]],
        session_timeout_ms=wanted.session_timeout,
        heartbeat_interval_ms=300,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=50,
    )
    consumer.subscribe([wanted.topic], listener=Listener(busy))
    await consumer.start()
    while not terminated:
        async with busy:
            await read(consumer)
        await asyncio.sleep(0)
    await consumer.stop()
    say("closed")


asyncio.run(main())
