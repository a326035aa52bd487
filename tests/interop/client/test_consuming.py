"""Kohort's consumer reads what others have written, from where it is told to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pyarrow as pa
import pytest
from confluent_kafka import Consumer as Librdkafka
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from kohort.client import ClientConfig, Consumer, OffsetAndMetadata, Record, TopicPartition
from kohort.client.errors import NoOffsetError

from ...waiting import run
from ..clients import LIBRARIES
from ..clients.face import COMPRESSIONS, Message
from ..servers import Server
from ..topics import create_topic
from .records import by_partition, numbered, take, write

NewTopic = Callable[..., str]
NewName = Callable[[], str]
LIBRDKAFKA = next(library for library in LIBRARIES if library.name == "librdkafka")


def committed(broker: Server, group: str, topic: str, partitions: int) -> dict[int, int]:
    """What librdkafka sees of a group's offsets."""
    consumer = Librdkafka({"bootstrap.servers": broker.bootstrap, "group.id": group})
    found = consumer.committed([Place(topic, partition) for partition in range(partitions)], timeout=20)
    consumer.close()
    return {each.partition: each.offset for each in found if each.offset >= 0}


def test_a_group_reads_all_commits_on_close_and_goes_on_there(
    broker: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, group = new_topic(3), new_name()
    values = numbered(3, 500)
    write(broker.bootstrap, topic, values)
    told: list[tuple[str, set[TopicPartition]]] = []

    async def scenario() -> None:
        async with Consumer(broker.bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
            consumer.subscribe(
                topic,
                on_assign=lambda partitions: told.append(("assign", set(partitions))),
                on_revoke=lambda partitions: told.append(("revoke", set(partitions))),
            )
            assert by_partition(await take(consumer, 1500)) == values
            assert consumer.assignment() == {TopicPartition(topic, n) for n in range(3)}
            assert consumer.subscription().topics == {topic}
        assert told == [(event, {TopicPartition(topic, n) for n in range(3)}) for event in ("assign", "revoke")]
        assert committed(broker, group, topic, 3) == {0: 500, 1: 500, 2: 500}
        write(broker.bootstrap, topic, more := numbered(3, 10, first=500))
        async with Consumer(broker.bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
            consumer.subscribe(topic)
            assert by_partition(await take(consumer, 30)) == more

    run(scenario())


def test_assigned_partitions_sought_paused_and_measured(broker: Server, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    write(broker.bootstrap, topic, numbered(2, 100))
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def scenario() -> None:
        async with Consumer(broker.bootstrap, auto_offset_reset="earliest", fetch_max_wait_ms=50) as consumer:
            consumer.assign([zero, one])
            assert await consumer.beginning_offsets(zero, one) == {zero: 0, one: 0}
            assert await consumer.end_offsets(zero, one) == {zero: 100, one: 100}
            consumer.pause(one)
            assert consumer.paused() == {one}
            assert by_partition(await take(consumer, 100)) == numbered(1, 100)
            assert await consumer.poll(timeout_ms=100) == []
            consumer.seek(zero, 95)
            consumer.seek(one, 98)
            consumer.resume(one)
            found = by_partition(await take(consumer, 7))
            assert found == {0: [b"95", b"96", b"97", b"98", b"99"], 1: [b"98", b"99"]}
            consumer.seek(zero, 40)
            assert (await take(consumer, 1))[0].offset == 40  # nothing of before
            assert await consumer.lag(one) == {one: 0}
            assert consumer.position(one) == 100
            await consumer.seek_to_beginning(one)
            await consumer.seek_to_end(zero)
            assert {record.partition for record in await take(consumer, 100)} == {1}
            write(broker.bootstrap, topic, {0: [b"new"]})
            assert [record.value for record in await take(consumer, 1)] == [b"new"]

    run(scenario())


def test_offsets_by_time(broker: Server, new_topic: NewTopic) -> None:
    topic = new_topic()
    LIBRDKAFKA.produce(broker.bootstrap, topic, [Message(b"%d" % n, timestamp=1_000_000 + 1000 * n) for n in range(50)])
    place = TopicPartition(topic, 0)

    async def scenario() -> None:
        async with Consumer(broker.bootstrap) as consumer:
            consumer.assign([place])
            found = await consumer.offsets_for_times({place: 1_019_500})
            assert found[place] is not None and found[place][:2] == (20, 1_020_000)
            assert await consumer.offsets_for_times({place: 2_000_000}) == {place: None}
            await consumer.seek_to_time({place: 1_045_000})
            assert [record.value for record in await take(consumer, 5)] == [b"45", b"46", b"47", b"48", b"49"]

    run(scenario())


def test_a_pattern_finds_topics_as_they_come(broker: Server, admin: AdminClient, new_name: NewName) -> None:
    first, second, other = (f"pattern-{each}-{new_name()}" for each in ("a", "b", "other"))
    stem = new_name().rpartition("-")[0]
    for topic in (first, other):
        create_topic(admin, topic)
        write(broker.bootstrap, topic, {0: [topic.encode()]})

    async def scenario() -> None:
        config = ClientConfig(bootstrap_servers=broker.bootstrap, metadata_max_age_ms=300)
        async with Consumer(config, group_id=new_name(), auto_offset_reset="earliest") as consumer:
            consumer.subscribe(pattern=f"pattern-[ab]-{stem}.*")
            assert [record.topic for record in await take(consumer, 1)] == [first]
            create_topic(admin, second)
            write(broker.bootstrap, second, {0: [b"late"]})
            assert [record.topic for record in await take(consumer, 1)] == [second]

    run(scenario())


@pytest.mark.parametrize("reset", ["earliest", "latest", "by_duration:PT1H", "none"])
def test_where_to_start_without_an_offset_and_after_one_that_is_gone(
    reset: str, broker: Server, admin: AdminClient, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, group = new_topic(), new_name()
    now = int(time.time() * 1000)
    ages = [7200] * 10 + [60] * 10  # seconds
    LIBRDKAFKA.produce(
        broker.bootstrap, topic, [Message(b"%d" % n, timestamp=now - 1000 * age) for n, age in enumerate(ages)]
    )
    place = TopicPartition(topic, 0)
    first = {"earliest": 0, "latest": 20, "by_duration:PT1H": 10}

    async def scenario() -> None:
        async with Consumer(broker.bootstrap, group_id=group, auto_offset_reset=reset) as consumer:
            consumer.assign([place])
            if reset == "none":
                with pytest.raises(NoOffsetError, match=topic):
                    await take(consumer, 1)
                consumer.seek(place, 3)
                assert (await take(consumer, 1))[0].offset == 3
            elif reset == "latest":
                while consumer.position(place) is None:
                    assert await consumer.poll(timeout_ms=100) == []
                write(broker.bootstrap, topic, {0: [b"20"]})
                assert (await take(consumer, 1))[0].offset == 20
            else:
                assert (await take(consumer, 1))[0].offset == first[reset]
            admin.delete_records([Place(topic, 0, 15)])[Place(topic, 0, 15)].result(20)
            consumer.seek(place, 5)  # where nothing is any more
            if reset == "none":
                with pytest.raises(NoOffsetError):
                    await take(consumer, 1)
            elif reset == "latest":
                assert await consumer.poll(timeout_ms=300) == []
            else:
                assert (await take(consumer, 1))[0].offset == 15

    run(scenario())


def test_offsets_are_committed_by_hand(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic, group = new_topic(2), new_name()
    write(broker.bootstrap, topic, numbered(2, 100))
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def scenario() -> None:
        async with Consumer(
            broker.bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
        ) as consumer:
            consumer.subscribe(topic)
            taken = await take(consumer, 30)
            await consumer.commit()
            counts = {n: sum(record.partition == n for record in taken) for n in range(2)}
            assert committed(broker, group, topic, 2) == counts
            await consumer.commit({zero: 50, one: OffsetAndMetadata(60, metadata="here")})
            found = await consumer.committed(zero, one)
            assert found[zero].offset == 50 and found[one].offset == 60 and found[one].metadata == "here"
            done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
            consumer.commit_soon({zero: 51}, lambda *result: done.set_result(result))
            await done
            assert committed(broker, group, topic, 2) == {0: 51, 1: 60}
        assert committed(broker, group, topic, 2) == {0: 51, 1: 60}

    run(scenario())


def test_offsets_are_committed_meanwhile(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic, group = new_topic(), new_name()
    write(broker.bootstrap, topic, numbered(1, 100))

    async def scenario() -> None:
        async with Consumer(
            broker.bootstrap, group_id=group, auto_offset_reset="earliest", auto_commit_interval_ms=50
        ) as consumer:
            consumer.subscribe(topic)
            seen = 0
            async for record in consumer:
                seen += 1
                if seen < 100:
                    continue
                # The one in hand isn't counted yet.
                while committed(broker, group, topic, 1) != {0: 99}:
                    await asyncio.sleep(0.05)
                assert record.offset == 99
                break

    run(scenario())


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_what_transactions_show(isolation: str, broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic = new_topic()
    write(broker.bootstrap, topic, {0: [b"before"]})
    with LIBRDKAFKA.transactional(broker.bootstrap, new_name()) as transactions:
        for value, end in ((b"aborted", "abort"), (b"committed", "commit"), (b"aborted again", "abort")):
            transactions.begin()
            transactions.send(topic, value)
            getattr(transactions, end)()
    write(broker.bootstrap, topic, {0: [b"after"]})
    expected = [b"before", b"committed", b"after"]
    if isolation == "read_uncommitted":
        expected = [b"before", b"aborted", b"committed", b"aborted again", b"after"]

    async def scenario() -> None:
        async with Consumer(broker.bootstrap, isolation_level=isolation, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert [record.value for record in await take(consumer, len(expected))] == expected

    run(scenario())


def test_records_of_every_kind_and_compression(broker: Server, new_topic: NewTopic) -> None:
    kinds = [
        Message(b"value"),
        Message(None, b"a tombstone"),
        Message(b"", b""),
        Message("größe".encode(), "schlüssel".encode(), (("h", b"1"), ("h", b""), ("ü", b"\0\xff")), 1_234_567_890_123),
        *(Message(b"%d" % n * 100, timestamp=1_700_000_000_000 + n) for n in range(300)),
    ]
    topics = {compression: new_topic() for compression in COMPRESSIONS}
    for compression, topic in topics.items():
        LIBRDKAFKA.produce(broker.bootstrap, topic, kinds, compression=compression)
    places = [TopicPartition(topic, 0) for topic in topics.values()]
    count = len(kinds)

    async def scenario() -> None:
        async with Consumer(broker.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign(places)
            found: dict[str, list[Record]] = {topic: [] for topic in topics.values()}
            for record in await take(consumer, count * len(topics)):
                found[record.topic].append(record)
            for records in found.values():
                assert [(r.key, r.value, tuple(r.headers)) for r in records] == [m.content for m in kinds]
                assert [r.offset for r in records] == list(range(count))
                assert all(m.timestamp in (None, r.timestamp) for r, m in zip(records, kinds, strict=True))
            await consumer.seek_to_beginning()
            tables: dict[str, list[pa.RecordBatch]] = {topic: [] for topic in topics.values()}
            left = count * len(topics)
            async for batch in consumer.batches():
                tables[batch.column("topic")[0].as_py()].append(batch)
                left -= batch.num_rows
                if not left:
                    break
            for topic, batches in tables.items():
                table = pa.Table.from_batches(batches)
                assert table.column("value").to_pylist() == [m.value for m in kinds]
                assert table.column("key").to_pylist() == [m.key for m in kinds]
                assert table.column("offset").to_pylist() == list(range(count))
                assert table.column("partition").unique().to_pylist() == [0]
                assert table.column("timestamp").cast(pa.int64()).to_pylist() == [r.timestamp for r in found[topic]]

    run(scenario())


def test_what_is_deserialized(broker: Server, new_topic: NewTopic) -> None:
    topic = new_topic()
    LIBRDKAFKA.produce(broker.bootstrap, topic, [Message(b"1", b"one"), Message(None, b"none")])

    async def scenario() -> None:
        async with Consumer(
            broker.bootstrap, auto_offset_reset="earliest", key_deserializer=bytes.decode, value_deserializer=int
        ) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert [(r.key, r.value) for r in await take(consumer, 2)] == [("one", 1), ("none", None)]

    run(scenario())


def test_topics_and_partitions_are_known(broker: Server, new_topic: NewTopic) -> None:
    topic = new_topic(3)

    async def scenario() -> None:
        async with Consumer(broker.bootstrap) as consumer:
            assert topic in await consumer.topics()
            assert len(await consumer.partitions_for(topic)) == 3

    run(scenario())
