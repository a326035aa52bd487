"""aiokafka: where a consumer begins, what it commits, and many of them in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import NoOffsetForPartitionError, OffsetOutOfRangeError
from aiokafka.structs import OffsetAndMetadata

from .clients import LIBRARIES, Message
from .servers import Server

NewTopic = Callable[..., str]
NewName = Callable[[], str]
DEADLINE = 30


@asynccontextmanager
async def consumer(server: Server, *topics: str, **settings: Any) -> AsyncIterator[AIOKafkaConsumer]:
    common = {"bootstrap_servers": server.bootstrap, "enable_auto_commit": False, "fetch_max_wait_ms": 10}
    async with AIOKafkaConsumer(*topics, **common | {"heartbeat_interval_ms": 300} | settings) as consumer:
        yield consumer


@pytest.fixture
def topic(server: Server, new_topic: NewTopic) -> str:
    """Ten records, "0" to "9", at 1000, 2000, … 10000 ms."""
    topic = new_topic()
    messages = [Message(b"%d" % i, timestamp=1000 * (i + 1)) for i in range(10)]
    LIBRARIES[2].produce(server.bootstrap, topic, messages)
    return topic


async def first(consumer: AIOKafkaConsumer) -> bytes | None:
    return (await asyncio.wait_for(consumer.getone(), DEADLINE)).value


@pytest.mark.parametrize(("policy", "value"), [("earliest", b"0"), ("latest", b"new")])
def test_a_group_without_offsets_begins_where_its_policy_says(
    policy: str, value: bytes, server: Server, topic: str, new_name: NewName
) -> None:
    async def main() -> None:
        async with (
            consumer(server, topic, group_id=new_name(), auto_offset_reset=policy) as member,
            AIOKafkaProducer(bootstrap_servers=server.bootstrap) as producer,
        ):
            if policy == "latest":
                assert await member.position(TopicPartition(topic, 0)) == 10
            await producer.send_and_wait(topic, b"new")
            assert await first(member) == value

    asyncio.run(main())


def test_none_is_an_error(server: Server, topic: str, new_name: NewName) -> None:
    async def main() -> None:
        async with consumer(server, topic, group_id=new_name(), auto_offset_reset="none") as member:
            with pytest.raises(NoOffsetForPartitionError):
                await first(member)

    asyncio.run(main())


def test_an_offset_out_of_range_without_a_policy_is_an_error(server: Server, topic: str) -> None:
    async def main() -> None:
        async with consumer(server, auto_offset_reset="none") as reader:
            reader.assign([partition := TopicPartition(topic, 0)])
            reader.seek(partition, 5000)
            with pytest.raises(OffsetOutOfRangeError):
                await first(reader)

    asyncio.run(main())


def test_seek_and_offsets_for_times(server: Server, topic: str) -> None:
    async def main() -> None:
        async with consumer(server) as reader:
            reader.assign([partition := TopicPartition(topic, 0)])
            for offset in (7, 3, 9):
                reader.seek(partition, offset)
                assert await first(reader) == b"%d" % offset
            found = {t: (await reader.offsets_for_times({partition: t}))[partition] for t in (0, 1001, 10_000, 10_001)}
            assert {t: hit and hit.offset for t, hit in found.items()} == {0: 0, 1001: 1, 10_000: 9, 10_001: None}
            assert await reader.beginning_offsets([partition]) == {partition: 0}
            assert await reader.end_offsets([partition]) == {partition: 10}

    asyncio.run(main())


def test_committed_offsets_and_lag(server: Server, topic: str, new_name: NewName) -> None:
    group, partition = new_name(), TopicPartition(topic, 0)

    async def commit() -> None:
        async with consumer(server, topic, group_id=group) as member:
            assert await member.committed(partition) is None
            await member.commit({partition: OffsetAndMetadata(4, "half-way, ünï")})

    async def resume() -> None:
        async with consumer(server, topic, group_id=group) as member:
            assert await member.committed(partition) == 4
            assert await first(member) == b"4"
            highwater = member.highwater(partition)
            assert highwater is not None and highwater - 4 == 6

    asyncio.run(commit())
    asyncio.run(resume())


def test_what_is_read_is_committed_on_stop(server: Server, topic: str, new_name: NewName) -> None:
    group = new_name()

    async def main() -> int | None:
        settings = {"group_id": group, "auto_offset_reset": "earliest"}
        async with consumer(server, topic, **settings | {"enable_auto_commit": True}) as member:
            assert [await first(member) for _ in range(6)] == [b"%d" % i for i in range(6)]
        async with consumer(server, topic, **settings) as member:
            return await member.committed(TopicPartition(topic, 0))

    assert asyncio.run(main()) == 6


def test_fifty_producers_and_consumers_at_once(server: Server, new_topic: NewTopic) -> None:
    topic, count = new_topic(50), 200

    async def write(partition: int) -> None:
        async with AIOKafkaProducer(bootstrap_servers=server.bootstrap, enable_idempotence=True) as producer:
            sent = [await producer.send(topic, b"%d" % i, partition=partition) for i in range(count)]
            await asyncio.gather(*sent)

    async def read(partition: int) -> list[bytes | None]:
        async with consumer(server, auto_offset_reset="earliest") as reader:
            reader.assign([TopicPartition(topic, partition)])
            return [await first(reader) for _ in range(count)]

    async def main() -> list[list[bytes | None]]:
        readers = [asyncio.create_task(read(partition)) for partition in range(50)]
        await asyncio.gather(*(write(partition) for partition in range(50)))
        return await asyncio.gather(*readers)

    assert asyncio.run(main()) == [[b"%d" % i for i in range(count)]] * 50


def test_twelve_groups_in_one_loop_each_read_everything(server: Server, topic: str, new_name: NewName) -> None:
    async def read(group: str) -> list[bytes | None]:
        async with consumer(server, topic, group_id=group, auto_offset_reset="earliest") as member:
            return [await first(member) for _ in range(10)]

    async def main() -> list[list[bytes | None]]:
        return await asyncio.gather(*(read(new_name()) for _ in range(12)))

    assert asyncio.run(main()) == [[b"%d" % i for i in range(10)]] * 12


def test_ten_members_that_join_at_once_share_ten_partitions(
    server: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, group = new_topic(10), new_name()

    async def main() -> None:
        members = [
            AIOKafkaConsumer(
                topic, bootstrap_servers=server.bootstrap, group_id=group, heartbeat_interval_ms=300, client_id=f"m{i}"
            )
            for i in range(10)
        ]
        await asyncio.gather(*(member.start() for member in members))
        async with asyncio.timeout(DEADLINE):
            while sorted(p.partition for m in members for p in m.assignment()) != list(range(10)) or not all(
                m.assignment() for m in members
            ):
                await asyncio.sleep(0.05)
        await asyncio.gather(*(member.stop() for member in members))

    asyncio.run(main())


def test_batches_made_by_hand(server: Server, new_topic: NewTopic) -> None:
    topic = new_topic()

    async def main() -> None:
        async with AIOKafkaProducer(bootstrap_servers=server.bootstrap, compression_type="lz4") as producer:
            batch = producer.create_batch()
            for i in range(100):
                assert batch.append(key=None, value=b"%d" % i, timestamp=None) is not None
            batch.close()
            await (await producer.send_batch(batch, topic, partition=0))

    asyncio.run(main())
    assert [m.value for m in LIBRARIES[2].consume(server.bootstrap, topic)] == [b"%d" % i for i in range(100)]
