"""The producer against a broker in this process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kohort.client.config import ClientConfig
from kohort.client.errors import (
    ClosedError,
    ConfigError,
    FencedError,
    NotDeliveredError,
    RequestTimeoutError,
    TransactionAbortableError,
)
from kohort.client.producer import Producer
from kohort.client.producing.batch import Identity
from kohort.client.producing.delivery import Delivery
from kohort.client.types import GroupMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kohort.protocol.messages.fetch import FetchRequest, FetchResponse
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kohort.protocol.records.batch import BatchHeader, check_batches
from kohort.protocol.records.rows import Rows, decode_rows
from kohort.testing.broker import Broker
from tests.waiting import run, until


async def create(producer: Producer, name: str, partitions: int = 1, **configs: str) -> None:
    topic = CreateTopicsRequest.Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreateTopicsRequest.Topic.Config(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=5000)
    answer = await producer._cluster.ask_any(request, CreateTopicsResponse)
    assert answer.topics[0].error_code == 0


async def fetch(producer: Producer, topic: str, partition: int = 0) -> list[tuple[BatchHeader, Rows]]:
    connection = await producer._cluster.any_connection()
    part = FetchRequest.Topic.Partition(partition=partition, fetch_offset=0, partition_max_bytes=2**30)
    request = FetchRequest(
        max_bytes=2**30, topics=[FetchRequest.Topic(topic=topic, partitions=[part])], session_epoch=-1
    )
    answer = await connection.ask(request, FetchResponse, version=connection.version(FetchRequest, 12))
    (said,) = answer.responses[0].partitions
    assert said.error_code == 0
    data = bytes(said.records or b"")
    return [(header, decode_rows(data, header)) for header in check_batches(data)]


async def values(producer: Producer, topic: str, partition: int = 0) -> list[bytes | None]:
    batches = await fetch(producer, topic, partition)
    return [value for header, rows in batches if not header.control for value in rows.values]


def test_records_arrive_with_all_they_have() -> None:
    async def body() -> None:
        async with Broker() as broker, Producer(broker.bootstrap_servers) as producer:
            first = await producer.send("t", b"one", key=b"k", timestamp_ms=1000, headers=[("h", b"1"), ("n", None)])
            second = await producer.send("t", None)
            assert (await first)[:4] == ("t", 0, 0, 1000)
            assert (await second).offset == 1 and second.exception() is None
            (_, rows), *_ = await fetch(producer, "t")
            assert rows.keys[0] == b"k" and rows.values == [b"one", None]
            assert rows.headers == [[("h", b"1"), ("n", None)], []]
            called: list[object] = []
            first.add_done_callback(called.append)
            await until(lambda: called == [first])

    run(body())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_many_records_keep_their_order_in_every_codec(codec: str) -> None:
    async def body() -> None:
        async with (
            Broker() as broker,
            Producer(broker.bootstrap_servers, compression_type=codec, batch_size=4000) as producer,
        ):
            deliveries = [await producer.send("t", b"%05d" % number) for number in range(3000)]
            await producer.flush()
            assert [delivery.result().offset for delivery in deliveries] == list(range(3000))
            assert await values(producer, "t") == [b"%05d" % number for number in range(3000)]

    run(body())


def test_serializers_and_what_is_not_bytes() -> None:
    async def body() -> None:
        async with Broker() as broker, Producer(broker.bootstrap_servers, value_serializer=str.encode) as producer:
            await producer.send("t", "text", key=bytearray(b"k"))
            with pytest.raises(TypeError, match="key_serializer"):
                await producer.send("t", "text", key="key")
            with pytest.raises(TypeError, match="the header 'a' is 'b'; a name is str, a value bytes or None"):
                await producer.send("t", "text", headers=[("a", "b")])  # type: ignore[list-item]
            await producer.flush()
            assert await values(producer, "t") == [b"text"]

    run(body())


def test_what_cannot_be_sent_is_said_at_once() -> None:
    async def body() -> None:
        async with Broker({"auto.create.topics.enable": "false"}) as broker:
            async with Producer(broker.bootstrap_servers, max_block_ms=3000, max_request_size=10_000) as producer:
                await create(producer, "t", 2)
                with pytest.raises(KafkaError, match=r"MESSAGE_TOO_LARGE.*max_request_size=10000"):
                    await producer.send("t", bytes(10_000))
                with pytest.raises(KafkaError, match=r"UNKNOWN_TOPIC_OR_PARTITION.*max_block_ms=3000"):
                    await producer.send("nowhere", b"")
                with pytest.raises(ValueError, match="has 2 partitions, so there is none with number 2"):
                    await producer.send("t", b"", partition=2)
                assert (await (await producer.send("t", b"", partition=1))).partition == 1
            with pytest.raises(ClosedError):
                await producer.send("t", b"")

    run(body())
    for bad in ({"acks": 2}, {"compression_type": "zip"}, {"acks": 1}, {"partitioner": "x"}, {"linger_ms": -1}):
        with pytest.raises(ConfigError):
            Producer("localhost", **bad)


def test_what_a_topic_refuses_is_split_and_then_fails_clearly() -> None:
    async def body() -> None:
        async with Broker() as broker, Producer(broker.bootstrap_servers) as producer:
            await create(producer, "small", max_message_bytes="1000")
            deliveries = [await producer.send("small", b"%0300d" % number) for number in range(20)]
            await producer.flush()
            assert sorted(delivery.result().offset for delivery in deliveries) == list(range(20))
            assert await values(producer, "small") == [b"%0300d" % number for number in range(20)]
            large = await producer.send("small", bytes(2000))
            with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
                await large
            assert (await (await producer.send("small", b"after"))).offset == 20

    run(body())


def test_memory_is_bounded_and_waiting_for_it_ends() -> None:
    async def body() -> None:
        async with Broker() as broker:
            small = Producer(broker.bootstrap_servers, buffer_memory=20_000, max_block_ms=3000, linger_ms=60_000)
            async with small as producer:
                most = 0
                for _ in range(300):
                    await producer.send("t", bytes(1000))
                    most = max(most, producer._intake.accumulator.buffered)
                assert most <= 20_000
                await producer.flush()
                producer._intake.sender._closed = True  # nobody sends any more
                for broker in producer._intake.sender._broker_senders.values():
                    assert broker.task is not None
                    broker.task.cancel()
                with pytest.raises(RequestTimeoutError, match="buffer_memory=20000 was full for max_block_ms=3000"):
                    for _ in range(30):
                        await producer.send("t", bytes(1000))
                with pytest.raises(NotDeliveredError, match="still on their way after timeout_ms=50") as flushed:
                    await producer.flush(timeout_ms=50)
                assert flushed.value.records["t"] > 10
                with pytest.raises(NotDeliveredError, match="closed") as closed:
                    await producer.close(timeout_ms=50)
                assert closed.value.records == flushed.value.records

    run(body())


def test_a_cancelled_wait_for_a_delivery_does_nothing_to_it() -> None:
    async def body() -> None:
        async with Broker() as broker, Producer(broker.bootstrap_servers, linger_ms=200) as producer:
            delivery = await producer.send("t", b"v")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(delivery, 0.01)
            assert (await delivery).offset == 0

    run(body())


def test_acks_0_and_1() -> None:
    async def body() -> None:
        async with Broker() as broker:
            for acks, offset in ((0, -1), (1, 1)):
                async with Producer(broker.bootstrap_servers, acks=acks, enable_idempotence=False) as producer:
                    assert (await (await producer.send("t", b"v"))).offset == offset

    run(body())


def test_tables_go_by_key_by_column_and_in_turns() -> None:
    async def body() -> None:
        async with Broker() as broker, Producer(broker.bootstrap_servers, max_request_size=20_000) as producer:
            await create(producer, "t", 4)
            keys = [b"key-%d" % number for number in range(2000)]
            table = pa.table({"key": keys, "value": [b"v%d" % number for number in range(2000)]})
            parts = await (await producer.send_table("t", table))
            assert sum(part.records for part in parts.values()) == 2000 and len(parts) == 4
            routes = producer._intake.routes["t"]
            for partition in range(4):
                batches = await fetch(producer, "t", partition)
                assert all(header.size <= 20_000 for header, _ in batches)
                found = [key for _, rows in batches for key in rows.keys]
                assert found == [key for key in keys if routes.number(key) == partition]
            await create(producer, "u", 4)
            columns = pa.table({"value": ["a", "b", "c"], "partition": [3, 3, 1], "timestamp": [1, 2, 3]})
            parts = await (await producer.send_table("u", columns))
            assert parts == {3: (0, 2), 1: (0, 1)}
            assert await values(producer, "u", 3) == [b"a", b"b"]
            await create(producer, "w", 4)
            keyless = pa.table({"value": [bytes(1000)] * 200})
            parts = await (await producer.send_table("w", keyless))
            assert len(parts) > 1 and sum(part.records for part in parts.values()) == 200
            assert await (await producer.send_table("w", keyless.slice(0, 5), partition=2))
            for bad, why in (
                (pa.table({"values": ["a"]}), "columns values"),
                (pa.table({"value": [bytes(30_000)]}), "max_request_size"),
                (pa.table({"value": ["a"], "partition": [9]}), "none with number 9"),
                (pa.table({"value": ["a"], "partition": [-1]}), "aren't negative"),
            ):
                with pytest.raises(ValueError, match=why):
                    await producer.send_table("w", bad)

    run(body(), timeout_s=40)


@pytest.mark.parametrize("large", [{"value": bytes(30_000)}, {"headers": [{"key": "h", "value": bytes(30_000)}]}])
def test_of_a_table_with_a_row_that_is_too_large_nothing_is_taken(large: dict[str, Any]) -> None:
    async def body() -> None:
        async with Broker() as broker, Producer(broker.bootstrap_servers, max_request_size=20_000) as producer:
            await create(producer, "t")
            row = {"key": b"k" * 100, "value": bytes(1_000), "headers": [{"key": "h", "value": b""}]}
            table = pa.Table.from_pylist([row] * 1_500 + [row | large] + [row] * 3)
            with pytest.raises(ValueError, match=r"a row with the key b'k{80}'… takes .* over max_request_size=20000"):
                await producer.send_table("t", table)
            await producer.flush()
            assert await fetch(producer, "t") == []
            await (await producer.send_table("t", table.slice(0, 1_500)))
            assert len(await values(producer, "t")) == 1_500

    run(body(), timeout_s=40)


def test_transactions_commit_abort_and_take_offsets_with_them() -> None:
    async def body() -> None:
        async with Broker() as broker, Producer(broker.bootstrap_servers, transactional_id="tx") as producer:
            assert producer._manager.transaction_v2
            with pytest.raises(RuntimeError, match="begin one first"):
                await producer.send("t", b"early")
            async with producer.transaction():
                await producer.send("t", b"one")
                group = GroupMetadata("g", -1, "")
                await producer.send_offsets_to_transaction({TopicPartition("t", 0): 5}, group)
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction():
                    await (await producer.send("t", b"two"))
                    raise ZeroDivisionError
            async with producer.transaction():
                pass
            async with producer.transaction():
                await producer.send("t", b"three")
            markers = [header.control for header, _ in await fetch(producer, "t")]
            assert markers == [False, True] * 3
            assert all(header.transactional for header, _ in await fetch(producer, "t"))
            topic = OffsetFetchRequest.Group.Topic(name="t", partition_indexes=(0,))
            request = OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id="g", topics=[topic])])
            connection = await producer._cluster.any_connection()
            answer = await connection.ask(request, OffsetFetchResponse, version=8)
            assert answer.groups[0].topics[0].partitions[0].committed_offset == 5

    run(body())


def test_the_second_user_of_a_transactional_id_fences_the_first() -> None:
    async def body() -> None:
        async with Broker() as broker, Producer(broker.bootstrap_servers, transactional_id="tx") as first:
            await first.begin_transaction()
            await (await first.send("t", b"old"))
            async with Producer(broker.bootstrap_servers, transactional_id="tx") as second:
                delivery = await first.send("t", b"too late")
                with pytest.raises(FencedError, match="'tx'"):
                    await delivery
                for method in (first.commit_transaction, first.abort_transaction, first.begin_transaction):
                    with pytest.raises(FencedError):
                        await method()
                with pytest.raises(FencedError):
                    await first.send("t", b"even later")
                async with second.transaction():
                    await second.send("t", b"new")
                assert await values(second, "t") == [b"old", b"new"]

    run(body())


def test_closing_aborts_an_open_transaction() -> None:
    async def body() -> None:
        async with Broker() as broker:
            async with Producer(broker.bootstrap_servers, transactional_id="tx") as producer:
                await producer.begin_transaction()
                await (await producer.send("t", b"old"))
            async with Producer(broker.bootstrap_servers) as other:
                assert [header.control for header, _ in await fetch(other, "t")] == [False, True]

    run(body())


def test_sequences_survive_a_broker_that_forgot() -> None:
    """Another id in between: the log begins at sequence 0 for it, as for one that was forgotten (KIP-360)."""

    async def body() -> None:
        async with Broker() as broker, Producer(broker.bootstrap_servers) as producer:
            await (await producer.send("t", b"one"))
            identity = producer._manager.identity
            assert identity is not None
            producer._manager.identity = Identity(identity.producer_id, identity.epoch + 3)
            assert (await (await producer.send("t", b"two"))).offset == 1
            last, _ = (await fetch(producer, "t"))[-1]
            assert (last.producer_epoch, last.base_sequence) == (identity.epoch + 3, 0)

    run(body())


def test_errors_that_nobody_saw_are_told_once_and_by_topic() -> None:
    async def body() -> None:
        async with Broker() as broker, Producer(broker.bootstrap_servers) as producer:
            await create(producer, "small", max_message_bytes="100")
            seen = await producer.send("small", bytes(500))
            await producer.send("small", bytes(500))
            with pytest.raises(KafkaError, match="TOO_LARGE"):
                await seen
            with pytest.raises(
                NotDeliveredError, match=r"1 record wasn't delivered \(1 of small\).*TOO_LARGE"
            ) as raised:
                await producer.flush()
            assert isinstance(raised.value.__cause__, KafkaError)
            assert raised.value.__cause__.code is ErrorCode.MESSAGE_TOO_LARGE
            await producer.flush()

    run(body())


def test_a_broker_that_restarts_costs_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        async with Broker(data_dir=tmp_path) as broker:
            address = broker.bootstrap_servers
        port = int(address.rpartition(":")[2])
        sent: list[Delivery] = []
        async with Broker(data_dir=tmp_path, port=port):
            config = ClientConfig(bootstrap_servers=address, retry_backoff_ms=20, reconnect_backoff_ms=20)
            producer = Producer(config, batch_size=500)
            await producer.start()

            async def keep_sending() -> None:
                while len(sent) < 600:
                    sent.append(await producer.send("t", b"%05d" % len(sent)))
                    await asyncio.sleep(0.001)

            sending = asyncio.create_task(keep_sending())
            await until(lambda: len(sent) > 100)
        async with Broker(data_dir=tmp_path, port=port):
            await until(lambda: len(sent) > 300)
        async with Broker(data_dir=tmp_path, port=port):
            await sending
            await producer.flush(timeout_ms=10_000)
            assert [delivery.result().offset for delivery in sent] == list(range(600))
            assert await values(producer, "t") == [b"%05d" % number for number in range(600)]
            await producer.close()

    run(body(), timeout_s=40)


def test_a_refused_record_fails_its_transaction_and_the_next_one_is_good() -> None:
    async def body() -> None:
        async with Broker() as broker, Producer(broker.bootstrap_servers, transactional_id="tx") as producer:
            await create(producer, "small", max_message_bytes="200")
            with pytest.raises(TransactionAbortableError, match="MESSAGE_TOO_LARGE"):
                async with producer.transaction():
                    await (await producer.send("small", b"before"))
                    await producer.send("small", bytes(500))
                    await producer.send("t", b"with it")
            async with producer.transaction():
                delivery = await producer.send("small", b"after")
            assert (await delivery).offset == 2
            assert await values(producer, "small") == [b"before", b"after"]

    run(body())
