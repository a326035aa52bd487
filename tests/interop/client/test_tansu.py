"""Tansu, which isn't Apache's: the client and streams groups work there, what pipelines need to count once doesn't."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from kohort.client import Consumer, Producer
from kohort.client.admin import Admin
from kohort.client.errors import UnsupportedError
from kohort.client.streams_member import ClassicSettings, StreamsMember
from kohort.client.types import OffsetAndMetadata, TopicPartition
from tests.client.streams.test_streams_member import Application
from tests.waiting import run, until

from ..tansu import Tansu
from ..toolchains import BUILD_S
from .test_classic_streams import shared, word_count

pytestmark = [pytest.mark.long, pytest.mark.timeout(BUILD_S)]

SESSION_MS = 4_000
"""Tansu answers the first join after half of it."""


@pytest.fixture(scope="module")
def tansu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tansu]:
    server = Tansu(tmp_path_factory.mktemp("tansu"))
    server.start()
    yield server
    server.kill()


async def new_topic(server: Tansu, partitions: int) -> str:
    name = f"topic-{uuid.uuid4().hex[:8]}"
    async with Admin(server.bootstrap) as admin:
        await admin.topics.create(name, partitions=partitions)
    return name


def test_a_classic_consumer_reads_what_a_producer_wrote_and_commits(tansu: Tansu) -> None:
    async def test() -> None:
        topic = await new_topic(tansu, 3)
        values = {b"%d" % number for number in range(20)}
        async with Producer(tansu.bootstrap) as producer:
            for value in values:
                await producer.send(topic, value, key=value)
        group = {"group_id": topic, "session_timeout_ms": SESSION_MS, "auto_offset_reset": "earliest"}
        async with Consumer(tansu.bootstrap, **group) as consumer:
            consumer.subscribe(topic)
            found = set()
            async for record in consumer:
                found.add(record.value)
                if found == values:
                    break
            await consumer.commit()
        async with Admin(tansu.bootstrap) as admin:
            committed = (await admin.group_offsets.committed(topic)).values()
            assert sum(each.offset for each in committed) == len(values)

    run(test())


def test_streams_members_share_tasks_in_a_classic_group(tansu: Tansu) -> None:
    async def test() -> None:
        source = await new_topic(tansu, 3)
        topology = word_count(f"app-{source}", source)
        quick = ClassicSettings(heartbeat_interval_ms=100, session_timeout_ms=SESSION_MS, max_warmup_replicas=0)

        def member() -> StreamsMember:
            return StreamsMember(tansu.bootstrap, f"app-{source}", topology, group_protocol="classic", classic=quick)

        async with member() as a:
            first = Application(a)
            await until(lambda: shared(first), "the leader has made the topics")
            async with member() as b:
                second = Application(b)
                await until(lambda: shared(first, second) and len(a.tasks) == len(b.tasks) == 3)
                await b.close()
                await second.task
            await until(lambda: shared(first), "the other has left")
            await a.close()
            await first.task

    run(test())


def test_what_a_pipeline_needs_and_tansu_lacks(tansu: Tansu) -> None:
    """When this fails, Tansu has learned something, and the guide's table is to be changed."""

    async def test() -> None:
        partition = TopicPartition(await new_topic(tansu, 1), 0)
        async with (
            Admin(tansu.bootstrap) as admin,
            Producer(tansu.bootstrap, transactional_id=partition.topic) as producer,
            Consumer(tansu.bootstrap, isolation_level="read_committed", auto_offset_reset="earliest") as reader,
        ):
            async with producer.transaction():
                await producer.send(partition.topic, b"committed")
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction():
                    await (await producer.send(partition.topic, b"aborted"))
                    assert await reader.end_offsets(partition) == {partition: 0}, "not the last stable offset, 2"
                    raise ZeroDivisionError
            reader.assign([partition])
            values = []
            async for record in reader:
                values.append(record.value)
                if len(values) == 2:
                    break
            assert values == [b"committed", b"aborted"], "Fetch doesn't say what was aborted"

            await admin.group_offsets.alter(partition.topic, {partition: OffsetAndMetadata(1, metadata="kept")})
            committed = await admin.group_offsets.committed(partition.topic)
            assert committed == {partition: OffsetAndMetadata(1)}, "OffsetFetch forgets what offsets are committed with"

            with pytest.raises(UnsupportedError, match="ListTransactions"):
                await admin.transactions.list()

    run(test())
