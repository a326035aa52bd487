"""What Kohort's producer writes, others read; and it writes it where others would."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer as Librdkafka
from confluent_kafka.admin import AdminClient

from kohort.client import Producer
from kohort.protocol.errors import ErrorCode, KafkaError

from ...waiting import run
from ..clients import Client
from ..clients.face import COMPRESSIONS
from ..servers import Server
from ..topics import read_partitions

NewTopic = Callable[..., str]
NewName = Callable[[], str]


def test_others_read_all_of_it_in_every_compression(broker: Server, client: Client, new_topic: NewTopic) -> None:
    kinds: list[dict[str, Any]] = [
        {"value": b"value", "key": b"key"},
        {"value": None, "key": b"a tombstone"},
        {"value": "größe".encode(), "key": b"", "headers": [("h", b"1"), ("ü", b"\xc3\xbc")]},
        *({"value": b"%d" % n * 50, "key": b"%d" % n} for n in range(500)),
    ]
    topics = {compression: new_topic() for compression in COMPRESSIONS}

    async def scenario() -> None:
        for compression, topic in topics.items():
            async with Producer(broker.bootstrap, compression_type=compression, linger_ms=20) as producer:
                deliveries = [await producer.send(topic, **kind, timestamp_ms=1_700_000_000_000) for kind in kinds]
                written = [await delivery for delivery in deliveries]
                assert [each[:3] for each in written] == [(topic, 0, n) for n in range(len(kinds))]
                assert {each.timestamp for each in written} == {1_700_000_000_000}

    run(scenario())
    for topic in topics.values():
        found = client.consume(broker.bootstrap, topic)
        assert [message.offset for message in found] == list(range(len(kinds)))
        assert [(m.value, m.key) for m in found] == [(kind["value"], kind["key"]) for kind in kinds]
        assert found[2].headers == (("h", b"1"), ("ü", b"\xc3\xbc"))
        assert found[2].timestamp in (None, 1_700_000_000_000)


def test_keys_go_where_librdkafka_and_java_put_them(broker: Server, new_topic: NewTopic) -> None:
    ours, theirs = new_topic(7), new_topic(7)
    generator = random.Random(5)
    keys = [generator.randbytes(generator.randrange(40)) for _ in range(500)]
    other = Librdkafka({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2"})
    for key in keys:
        other.produce(theirs, key, key)
    assert other.flush(30) == 0

    async def scenario() -> None:
        async with Producer(broker.bootstrap) as producer:
            for key in keys:
                await producer.send(ours, key, key=key)

    run(scenario())
    # In any order: on a topic just made, a batch of the other producer may be refused, and come again after the next.
    found = [
        {partition: Counter(values) for partition, values in read_partitions(broker.bootstrap, topic, 7).items()}
        for topic in (ours, theirs)
    ]
    assert found[0] == found[1]


def test_where_keyless_records_and_those_of_a_callable_go(broker: Server, new_topic: NewTopic) -> None:
    spread, chosen = new_topic(4), new_topic(4)

    async def scenario() -> None:
        async with Producer(broker.bootstrap, batch_size=1000, linger_ms=1) as producer:
            for n in range(2000):
                await producer.send(spread, b"%100d" % n)
        async with Producer(
            broker.bootstrap, partitioner=lambda topic, key, partitions: int(key) % partitions
        ) as producer:
            for n in range(40):
                await producer.send(chosen, b"%d" % n, key=b"%d" % n)

    run(scenario())
    shares = {n: len(values) for n, values in read_partitions(broker.bootstrap, spread, 4).items()}
    assert sum(shares.values()) == 2000
    assert min(shares.values()) > 200
    found = read_partitions(broker.bootstrap, chosen, 4)
    assert found == {partition: [b"%d" % n for n in range(partition, 40, 4)] for partition in range(4)}


@pytest.mark.parametrize("acks", ["all", 1, 0])
def test_acknowledgements(acks: Any, broker: Server, new_topic: NewTopic) -> None:
    topic = new_topic()

    async def scenario() -> None:
        async with Producer(broker.bootstrap, acks=acks, enable_idempotence=False) as producer:
            deliveries = [await producer.send(topic, b"%d" % n) for n in range(200)]
            await producer.flush()
            assert all(delivery.done() for delivery in deliveries)
            assert [(await each).offset for each in deliveries] == ([-1] * 200 if acks == 0 else list(range(200)))
            # Nobody answers with acks=0, so see whether it's there before the connection goes.
            while len(read_partitions(broker.bootstrap, topic, 1)[0]) < 200:
                await asyncio.sleep(0.05)

    run(scenario())
    assert read_partitions(broker.bootstrap, topic, 1)[0] == [b"%d" % n for n in range(200)]


def test_what_a_broker_refuses_is_said_by_the_delivery(broker: Server, new_topic: NewTopic) -> None:
    topic = new_topic(1, **{"max.message.bytes": "2000"})

    async def scenario() -> None:
        async with Producer(broker.bootstrap, linger_ms=0) as producer:
            first = await producer.send(topic, b"small")
            assert (await first).offset == 0
            refused = await producer.send(topic, random.Random(1).randbytes(5000))
            with pytest.raises(KafkaError) as error:
                await refused
            assert error.value.code == ErrorCode.MESSAGE_TOO_LARGE
            with pytest.raises(Exception, match="max_request_size"):
                await (await producer.send(topic, bytes(2 << 20)))
            assert (await (await producer.send(topic, b"small again"))).offset == 1

    run(scenario())


def test_a_large_batch_is_split_where_the_broker_wants_smaller_ones(broker: Server, new_topic: NewTopic) -> None:
    topic = new_topic(1, **{"max.message.bytes": "2000"})

    async def scenario() -> None:
        async with Producer(broker.bootstrap, linger_ms=50, batch_size=16384) as producer:
            deliveries = [await producer.send(topic, b"%100d" % n) for n in range(100)]
            assert [(await each).offset for each in deliveries] == list(range(100))

    run(scenario())
    assert [int(value or b"") for value in read_partitions(broker.bootstrap, topic, 1)[0]] == list(range(100))


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_table_becomes_records(compression: str, broker: Server, new_topic: NewTopic) -> None:
    topic, keyed = new_topic(), new_topic(5)
    count = 20_000
    table = pa.table(
        {
            "key": pa.array([b"%d" % n if n % 3 else None for n in range(count)], pa.binary()),
            "value": pa.array([b"value %d" % n if n % 7 else None for n in range(count)], pa.binary()),
        }
    )

    async def scenario() -> None:
        async with Producer(broker.bootstrap, compression_type=compression) as producer:
            delivery = await producer.send_table(topic, table, partition=0)
            await delivery
            await (await producer.send_table(keyed, table.filter(pa.compute.is_valid(table["key"]))))

    run(scenario(), timeout_s=120)
    assert read_partitions(broker.bootstrap, topic, 1)[0] == table["value"].to_pylist()
    found = read_partitions(broker.bootstrap, keyed, 5)
    assert Counter(value for values in found.values() for value in values) == Counter(
        table.filter(pa.compute.is_valid(table["key"]))["value"].to_pylist()
    )


def test_a_topic_is_created_when_it_is_written_to(broker: Server, admin: AdminClient, new_name: NewName) -> None:
    topic = new_name()

    async def scenario() -> None:
        async with Producer(broker.bootstrap) as producer:
            assert (await (await producer.send(topic, b"first"))).offset == 0

    run(scenario())
    assert topic in admin.list_topics().topics
