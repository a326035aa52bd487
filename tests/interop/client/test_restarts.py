"""Brokers that are killed and come back, or stay away, under clients at work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kohort.client import ClientConfig, Consumer, Producer, TopicPartition
from kohort.client.cluster import Cluster
from kohort.client.server_cluster_info import CoordinatorKind

from ...waiting import run
from ..members import Members, assert_at_least_once
from ..newest_kafka import KafkaCluster
from ..servers import KohortServer, Server
from ..topics import create_topic, numbers, read_partitions
from .records import take
from .test_faults import Given

pytestmark = pytest.mark.long

ALL = list(range(6))


class Stream:
    """A producer of ours that writes numbers into all partitions in turn, and keeps what was acknowledged."""

    def __init__(self, producer: Producer, topic: str, partitions: int) -> None:
        self.producer, self.topic, self.partitions = producer, topic, partitions
        self.ends = dict.fromkeys(range(partitions), 0)
        self.acknowledged = 0
        self.stopping = False

    async def run(self) -> None:
        waiting = []
        while not self.stopping:
            for partition in range(self.partitions):
                number = self.ends[partition]
                waiting.append((number, await self.producer.send(self.topic, b"%d" % number, partition=partition)))
                self.ends[partition] += 1
            await asyncio.sleep(0.01)
            while waiting and waiting[0][1].done():
                number, delivery = waiting.pop(0)
                assert (await delivery).offset == number
                self.acknowledged += 1
        for number, delivery in waiting:
            assert (await delivery).offset == number
            self.acknowledged += 1


async def transform(
    config: ClientConfig,
    source: str,
    target: str,
    transactions: int,
    restart: Callable[[], Coroutine[None, None, None]],
) -> dict[int, int]:
    """From topic to topic in so many transactions; in the middle of each, the broker restarts. Returns how far it got.

    While the broker is down, the second half of the records is sent, the offsets are, and the transaction is committed.
    """
    done = dict.fromkeys(range(3), 0)
    async with (
        Producer(config, transactional_id="transformer", linger_ms=1) as producer,
        Consumer(
            config,
            group_id="transformers",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=30_000,
        ) as consumer,
    ):
        consumer.subscribe(source)
        for _ in range(transactions):
            records = await take(consumer, 60)
            async with producer.transaction():
                for record in records[:30]:
                    await producer.send(target, record.value, partition=record.partition)
                await producer.flush()
                restarting = asyncio.create_task(restart())
                for record in records[30:]:
                    await producer.send(target, record.value, partition=record.partition)
                    await asyncio.sleep(0.01)
                for record in records:
                    done[record.partition] = record.offset + 1
                await producer.send_offsets_to_transaction(
                    {TopicPartition(source, partition): offset for partition, offset in done.items()},
                    consumer.group_metadata(),
                )
            await restarting
        found = await consumer.committed(*(TopicPartition(source, partition) for partition in done))
        assert {place.partition: each.offset for place, each in found.items() if each is not None} == done
    return done


async def reached(condition: Callable[[], bool], within: float = 30) -> None:
    """Wait until it's true."""
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.02)


def test_a_broker_restarts_under_a_producer_a_consumer_and_a_transaction(own_broker: Server) -> None:
    admin = AdminClient({"bootstrap.servers": own_broker.bootstrap})
    topic, target = (create_topic(admin, name, 3) for name in ("restarted", "transformed"))
    config = ClientConfig(
        bootstrap_servers=own_broker.bootstrap, reconnect_backoff_max_ms=200, retry_backoff_max_ms=200
    )
    given = Given()

    async def scenario() -> None:
        async with (
            Producer(config, linger_ms=1) as producer,
            Consumer(
                config,
                group_id="readers",
                auto_offset_reset="earliest",
                session_timeout_ms=6000,
                heartbeat_interval_ms=200,
                auto_commit_interval_ms=100,
            ) as consumer,
        ):
            consumer.subscribe(topic)
            stream = Stream(producer, topic, 3)
            writing = asyncio.create_task(stream.run())
            await given.read(consumer, 100)

            async def restart() -> None:
                await asyncio.to_thread(own_broker.restart)
                before = stream.acknowledged
                await given.read(consumer, sum(map(len, given.values.values())) + 100)
                await reached(lambda: stream.acknowledged > before + 100)

            times = 2 if isinstance(own_broker, KohortServer) else 1  # a JVM takes its time
            transformed = await transform(config, topic, target, times, restart)
            stream.stopping = True
            await writing
            await given.read(consumer, sum(stream.ends.values()))
            assert read_partitions(own_broker.bootstrap, topic, 3) == numbers(stream.ends)
            assert read_partitions(own_broker.bootstrap, target, 3) == numbers(transformed)

    run(scenario(), timeout_s=90)


def test_one_of_three_brokers_is_killed(cluster: KafkaCluster, members: Members) -> None:
    """The one that coordinates the group and leads partitions: all go on, and nothing acknowledged is lost."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("load", num_partitions=len(ALL), replication_factor=3)])["load"].result(20)

    async def coordinator(group: str) -> int:
        async with Cluster(cluster.bootstrap) as client:
            return await client.coordinator(CoordinatorKind.GROUP, group)

    async def leaders() -> set[int | None]:
        async with Cluster(cluster.bootstrap) as client:
            topic = await client.topic("load")
            return {each.leader for each in topic.partitions.values()}

    async def scenario() -> None:
        groups = [f"group-{n}" for n in range(20)]
        coordinators = {group: await coordinator(group) for group in groups}
        group = next(group for group in groups if coordinators[group] in (2, 3))
        killed = coordinators[group]
        assert killed in await leaders()
        common = {"bootstrap": cluster.bootstrap, "group": group, "topic": "load", "session_timeout": 10_000}
        team = [members.start("kohort_member", strategy="cooperative-sticky", **common) for _ in range(2)]
        config = ClientConfig(bootstrap_servers=cluster.bootstrap, retry_backoff_max_ms=200)
        async with Producer(config, acks="all", linger_ms=1) as producer:
            stream = Stream(producer, "load", len(ALL))
            writing = asyncio.create_task(stream.run())
            await reached(lambda: sum(members.committed().values()) > 500)
            cluster.nodes[killed].kill()
            acknowledged, committed = stream.acknowledged, sum(members.committed().values())
            await reached(lambda: stream.acknowledged > acknowledged + 1000)
            await reached(lambda: sum(members.committed().values()) > committed + 1000)
            stream.stopping = True
            await writing
        await reached(lambda: members.committed() == stream.ends)
        for member in team:
            await asyncio.to_thread(member.leave)
        assert_at_least_once(members.all, stream.ends)
        assert read_partitions(cluster.bootstrap, "load", len(ALL)) == numbers(stream.ends)

    run(scenario(), timeout_s=120)
