"""A queue's consumer and its group, against a broker in this process, without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from kohort.client import Admin, Producer
from kohort.client.admin import ConfigResource, NewTopic, ResourceType
from kohort.client.errors import NotDeliveredError
from kohort.spark.errors import ProgramError
from kohort.spark.program.queues import QueueSettings
from kohort.spark.program.settings import AppSettings
from kohort.spark.queues.consumer import QueueConsumer
from kohort.spark.queues.counts import QueueCounts
from kohort.spark.queues.running import deliver, set_up
from kohort.spark.queues.settlement import ACCEPT, REJECT, RELEASE, Settlement
from kohort.testing.broker import Broker
from tests.client.sharing.share_broker import TOPIC as OLD_TOPIC
from tests.client.sharing.share_broker import ShareBroker
from tests.waiting import run, until

from .fakes import TOPIC, job, queue

QUICK = {"group.share.min.record.lock.duration.ms": "1000"}
SETTINGS = QueueSettings(max_records=5)
SHORT = QueueSettings(lock_ms=3_000)


@asynccontextmanager
async def brokers(*topics: str, records: int = 0) -> AsyncIterator[AppSettings]:
    """A broker with these topics, the queue's with so many records."""
    async with Broker(QUICK) as broker:
        async with Admin(broker.bootstrap_servers) as admin:
            await admin.topics.create(*(NewTopic(topic, 1) for topic in topics))
        async with Producer(broker.bootstrap_servers) as producer:
            for number in range(records):
                await producer.send(TOPIC, job(number))
        yield AppSettings.of("workers", broker.bootstrap_servers)


@asynccontextmanager
async def consuming(settings: AppSettings) -> AsyncIterator[tuple[QueueConsumer, QueueCounts]]:
    counts = QueueCounts(TOPIC)
    consumer = QueueConsumer(settings.client, settings.application_id, queue(SETTINGS), counts)
    await consumer.start()
    try:
        yield consumer, counts
    finally:
        await consumer.close()


async def acquired(consumer: QueueConsumer) -> pa.Table:
    while (records := await consumer.acquire(SETTINGS.max_records)) is None:
        pass
    return records


def all_of(records: pa.Table, kind: int) -> Settlement:
    return Settlement(np.full(records.num_rows, kind, np.int8), {})


def test_workers_have_records_of_one_partition_and_get_what_another_leaves() -> None:
    async def scenario() -> None:
        async with brokers(TOPIC, "out", "dead", records=10) as settings:
            await set_up([queue(SETTINGS)], settings)
            async with consuming(settings) as (second, counted):
                async with consuming(settings) as (first, counts):
                    mine, others = await acquired(first), await acquired(second)
                    offsets = {*mine["offset"].to_pylist(), *others["offset"].to_pylist()}
                    assert (mine.num_rows, others.num_rows, offsets) == (5, 5, set(range(10)))
                    kinds = np.array([ACCEPT, RELEASE, REJECT, ACCEPT, ACCEPT], np.int8)
                    await second.acknowledge(others, Settlement(kinds, {}))
                    assert (counted.acquired, counted.accepted, counted.released, counted.rejected) == (5, 3, 1, 1)
                    assert (counts.acquired, counts.accepted) == (5, 0)
                left = {others["offset"][1].as_py(), *mine["offset"].to_pylist()}
                again: list[int] = []
                while len(again) < len(left):
                    records = await acquired(second)
                    assert set(records["delivery_count"].to_pylist()) == {2}
                    again += records["offset"].to_pylist()
                    await second.acknowledge(records, all_of(records, ACCEPT))
                assert sorted(again) == sorted(left)

    run(scenario())


def test_locks_are_renewed_while_the_job_runs() -> None:
    async def scenario() -> None:
        async with brokers(TOPIC, "out", "dead", records=5) as settings:
            await set_up([queue(SHORT)], settings)
            async with consuming(settings) as (consumer, counts):
                records = await acquired(consumer)
                await until(lambda: counts.renewed >= 2 * records.num_rows, "each lock is renewed twice")
                await consumer.acknowledge(records, all_of(records, ACCEPT))
                assert (counts.accepted, counts.lost) == (5, 0)

    run(scenario())


def test_where_the_group_forbids_it_no_lock_is_renewed_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with brokers(TOPIC, "out", "dead") as settings:
            assert await set_up([queue(SETTINGS)], settings)
            async with Admin(settings.client) as admin:
                group = ConfigResource(ResourceType.GROUP, "workers")
                await admin.configs.alter(group, set={"share.renew.acknowledge.enable": "false"})
            assert not await set_up([queue(SETTINGS)], settings)

    run(scenario())
    QueueConsumer(
        AppSettings.of("workers", "localhost:1").client, "workers", queue(), QueueCounts(TOPIC), renewed=False
    )
    assert "locks aren't renewed, since the group's share.renew.acknowledge.enable is off" in caplog.text


def test_a_broker_that_knows_no_renewals_is_said_once_and_work_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """As Apache Kafka 4.1."""

    async def scenario() -> None:
        async with ShareBroker(20, acknowledge=(1, 1), fetch=(1, 1)).running() as broker:
            old = queue(SETTINGS)
            old = replace(old, source=replace(old.source, topic=OLD_TOPIC))
            settings = AppSettings.of("workers", broker.scripted.address)
            counts = QueueCounts(OLD_TOPIC)
            consumer = QueueConsumer(settings.client, settings.application_id, old, counts)
            await consumer.start()
            try:
                while counts.accepted < 20:
                    records = await acquired(consumer)
                    await consumer.acknowledge(records, all_of(records, ACCEPT))
            finally:
                await consumer.close()
            assert broker.accepted == set(range(20))

    run(scenario())
    assert caplog.text.count("locks aren't renewed, since a broker is older than Apache Kafka 4.2") == 1


def test_a_group_is_set_up_as_the_queue_says() -> None:
    async def scenario() -> None:
        async with brokers(TOPIC, "out", "dead") as settings:
            await set_up([queue(SHORT)], settings)
            async with Admin(settings.client) as admin:
                group = ConfigResource(ResourceType.GROUP, "workers")
                configs = (await admin.configs.describe(group))[group]
                assert configs["share.auto.offset.reset"].value == "earliest"
                assert configs["share.record.lock.duration.ms"].value == "3000"
            with pytest.raises(ProgramError, match=r"can't be set up with .*share.record.lock.duration.ms=1: .*"):
                await set_up([queue(QueueSettings(lock_ms=1))], settings)

    run(scenario())


@pytest.mark.parametrize(("most", "warned"), [(4, False), (5, True)])
def test_brokers_that_would_give_up_a_record_first_are_told_of(
    most: int, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with brokers(TOPIC, "out", "dead") as settings:
            await set_up([queue(QueueSettings(max_deliveries=most))], settings)

    asyncio.run(scenario())
    assert ("max_deliveries=5 isn't below the group's share.delivery.count.limit, which is 5" in caplog.text) == warned


@pytest.mark.parametrize("missing", [TOPIC, "out", "dead"])
def test_a_topic_that_is_missing_is_said(missing: str) -> None:
    async def scenario() -> None:
        async with brokers(*{TOPIC, "out", "dead"} - {missing}) as settings:
            with pytest.raises(ProgramError, match=f"a topic isn't there: queue 'jobs' lacks '{missing}'. Create it, "):
                await set_up([queue(QueueSettings(dead_letters="dead"))], settings)

    asyncio.run(scenario())


def test_all_topics_that_are_missing_are_said_at_once() -> None:
    async def scenario() -> None:
        async with brokers(TOPIC) as settings:
            servers = f"127.0.0.1:{settings.client.addresses[0][1]}"
            with pytest.raises(
                ProgramError, match=rf"lacks 'out', 'dead'\. .*: kohort topics create out dead -b {servers}$"
            ):
                await set_up([queue(QueueSettings(dead_letters="dead"))], settings)

    asyncio.run(scenario())


def test_a_queue_hears_of_its_own_losses_alone() -> None:
    async def scenario() -> None:
        async with brokers("out") as settings:
            async with Admin(settings.client) as admin:
                await admin.topics.create(NewTopic("narrow", 1, configs={"max.message.bytes": "200"}))
            async with Producer(settings.client) as producer:
                large, small = pa.table({"value": [b"x" * 1_000]}), pa.table({"value": [b"x"]})
                written = asyncio.create_task(deliver(producer, "out", small))
                lost = asyncio.create_task(deliver(producer, "narrow", large))
                await asyncio.wait({lost, written})
                assert isinstance(lost.exception(), NotDeliveredError) and written.exception() is None

    run(scenario())
