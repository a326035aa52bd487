"""Transactions of Kohort's producer, seen by others; and exactly once from topic to topic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kohort.client import Consumer, GroupMetadata, Producer, TopicPartition
from kohort.client.errors import CommitFailedError, FencedError

from ...faults.plans import Frame
from ...faults.proxy import FaultyProxy
from ...waiting import run
from ..clients import LIBRARIES
from ..servers import Server
from ..topics import read_partitions
from .records import numbered, take, write

NewTopic = Callable[..., str]
NewName = Callable[[], str]
LIBRDKAFKA = next(library for library in LIBRARIES if library.name == "librdkafka")


def test_only_what_is_committed_is_seen(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic = new_topic(2)

    async def scenario() -> None:
        async with Producer(broker.bootstrap, transactional_id=new_name()) as producer:
            for n in range(10):
                await producer.begin_transaction()
                for partition in range(2):
                    await producer.send(topic, b"%d" % n, partition=partition)
                if n % 2:
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()
            async with producer.transaction():
                await producer.send(topic, b"by block", partition=0)
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send(topic, b"never", partition=0)
                    raise ZeroDivisionError
            await producer.begin_transaction()
            await producer.commit_transaction()  # an empty one

    run(scenario())
    odd = [b"1", b"3", b"5", b"7", b"9"]
    assert read_partitions(broker.bootstrap, topic, 2) == {0: [*odd, b"by block"], 1: odd}


def test_the_earlier_of_two_is_fenced(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic, name = new_topic(), new_name()

    async def scenario() -> None:
        async with Producer(broker.bootstrap, transactional_id=name) as earlier:
            await earlier.begin_transaction()
            await (await earlier.send(topic, b"earlier"))
            async with Producer(broker.bootstrap, transactional_id=name) as later:
                await later.begin_transaction()
                await later.send(topic, b"later")
                await later.commit_transaction()
                zombie = await earlier.send(topic, b"zombie")
                with pytest.raises(FencedError):
                    await earlier.commit_transaction()
                with pytest.raises(FencedError):
                    await zombie

    run(scenario())
    assert read_partitions(broker.bootstrap, topic, 1) == {0: [b"later"]}
    with LIBRDKAFKA.transactional(broker.bootstrap, name) as theirs:  # fences ours as well
        theirs.begin()
        theirs.send(topic, b"theirs")
        theirs.commit()
    assert read_partitions(broker.bootstrap, topic, 1) == {0: [b"later", b"theirs"]}


@pytest.mark.parametrize(
    ("broker", "protocol"),
    [("kohort", "classic"), ("kohort", "consumer"), ("kafka", "classic"), ("kafka", "consumer")],
    indirect=["broker"],
)
def test_from_topic_to_topic_exactly_once(
    protocol: str, broker: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    source, target, group = new_topic(2), new_topic(2), new_name()
    write(broker.bootstrap, source, numbered(2, 200))
    settings: dict[str, Any] = {
        "group_id": group,
        "group_protocol": protocol,
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "isolation_level": "read_committed",
    }

    async def transform(count: int, last: str) -> GroupMetadata:
        """So many records from source to target, ten a transaction; how the last transaction ends."""
        async with (
            Producer(broker.bootstrap, transactional_id=group) as producer,
            Consumer(broker.bootstrap, **settings) as consumer,
        ):
            consumer.subscribe(source)
            done = 0
            while done < count:
                records = await consumer.poll(max_records=min(10, count - done), timeout_ms=1000)
                if not records:
                    continue
                await producer.begin_transaction()
                for record in records:
                    await producer.send(target, record.value, partition=record.partition)
                offsets = {TopicPartition(r.topic, r.partition): r.offset + 1 for r in records}
                await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
                done += len(records)
                if done < count or last == "commit":
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()
            return consumer.group_metadata()

    async def scenario() -> None:
        await transform(100, "abort")  # 90 of them, then
        done = sum(len(v) for v in read_partitions(broker.bootstrap, target, 2).values())
        assert 0 < done < 100
        old = await transform(400 - done, "commit")
        # A member that is no more can't commit for the group.
        async with Producer(broker.bootstrap, transactional_id=f"{group}-zombie") as zombie:
            await zombie.begin_transaction()
            with pytest.raises(CommitFailedError):
                await zombie.send_offsets_to_transaction({TopicPartition(source, 0): 7}, old)
            await zombie.abort_transaction()
        async with Consumer(broker.bootstrap, **settings) as consumer:
            found = await consumer.committed(*(TopicPartition(source, n) for n in range(2)))
            assert {each.offset for each in found.values() if each is not None} == {200}

    run(scenario(), timeout_s=90)
    assert read_partitions(broker.bootstrap, target, 2) == numbered(2, 200)


@pytest.mark.parametrize(
    ("broker", "announced"), [("kohort", False), ("kafka", False), ("secure kafka", True)], indirect=["broker"]
)
def test_only_clusters_with_transaction_version_1_want_partitions_and_groups_announced(
    announced: bool, broker: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    source, target, group = new_topic(), new_topic(2), new_name()
    write(broker.bootstrap, source, numbered(1, 20))
    asked: set[str] = set()

    def note(frame: Frame) -> None:
        asked.add(frame.api)

    async def scenario() -> None:
        async with (
            FaultyProxy(broker.bootstrap, note) as proxy,
            Producer(proxy.bootstrap, transactional_id=group) as producer,
            Consumer(
                proxy.bootstrap, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest"
            ) as consumer,
        ):
            consumer.subscribe(source)
            for end in ("abort", "commit", "abort", "commit"):
                records = await take(consumer, 5)
                await producer.begin_transaction()
                for record in records:
                    await producer.send(target, record.value, partition=record.offset % 2)
                await producer.send_offsets_to_transaction(
                    {TopicPartition(source, 0): records[-1].offset + 1}, consumer.group_metadata()
                )
                await (producer.commit_transaction() if end == "commit" else producer.abort_transaction())
            place = TopicPartition(source, 0)
            found = (await consumer.committed(place))[place]
            assert found is not None and found.offset == 20

    run(scenario())
    assert read_partitions(broker.bootstrap, target, 2) == {
        parity: [b"%d" % n for n in (*range(5, 10), *range(15, 20)) if n % 2 == parity] for parity in range(2)
    }
    assert {"EndTxn", "TxnOffsetCommit"} <= asked
    assert asked & {"AddPartitionsToTxn", "AddOffsetsToTxn"} == (
        {"AddPartitionsToTxn", "AddOffsetsToTxn"} if announced else set()
    )


def test_a_producer_that_dies_leaves_nothing_open(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic, name = new_topic(), new_name()

    async def scenario() -> None:
        dead = Producer(broker.bootstrap, transactional_id=name)
        await dead.start()
        await dead.begin_transaction()
        await (await dead.send(topic, b"never"))
        await dead.close()  # with the transaction open
        async with Producer(broker.bootstrap, transactional_id=name) as heir, heir.transaction():
            await heir.send(topic, b"heir's")
        async with Consumer(broker.bootstrap, isolation_level="read_committed", auto_offset_reset="earliest") as reader:
            reader.assign([TopicPartition(topic, 0)])
            assert [record.value for record in await asyncio.wait_for(take(reader, 1), 20)] == [b"heir's"]

    run(scenario())
