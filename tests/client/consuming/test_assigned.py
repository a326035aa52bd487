"""Reading partitions that are assigned by hand, from a broker in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kohort.client.cluster import Cluster
from kohort.client.column_codec import columns_loaded
from kohort.client.consumer import Consumer
from kohort.client.errors import ClientError, ClosedError, NoOffsetError, RecordError
from kohort.client.types import TopicPartition
from kohort.protocol.records.batch import Compression
from kohort.protocol.records.rows import encode_rows
from kohort.testing.broker import Broker
from tests.client.consuming.support import append, create_topic, delete_topic, produce, take, values
from tests.waiting import run, until

T0 = TopicPartition("t", 0)


@asynccontextmanager
async def world(partitions: int = 1, **settings: Any) -> AsyncIterator[tuple[Cluster, Consumer]]:
    """A broker with a topic, a client to write to it, and a consumer that has all its partitions."""
    settings.setdefault("auto_offset_reset", "earliest")
    async with Broker() as broker, Cluster(broker.bootstrap_servers) as cluster:
        await create_topic(cluster, "t", partitions)
        async with Consumer(broker.bootstrap_servers, **settings) as consumer:
            consumer.assign([("t", partition) for partition in range(partitions)])
            yield cluster, consumer


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


def test_reads_what_was_written_and_goes_on_where_it_was() -> None:
    async def test() -> None:
        async with world() as (cluster, consumer):
            await produce(cluster, "t", numbers(10))
            records = await take(consumer, 4)
            assert records[0] == ("t", 0, 0, 0, None, b"0", [])
            assert consumer.position(T0) == 4
            await produce(cluster, "t", numbers(5, 10))
            assert values(await take(consumer, 11)) == numbers(11, 4)
            assert await consumer.poll(timeout_ms=20) == []
            assert consumer.position(T0) == 15

    run(test())


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4, Compression.ZSTD])
def test_many_records_come_in_order_once_as_records_and_as_batches(compression: Compression) -> None:
    async def test() -> None:
        async with world(partitions=3) as (cluster, consumer):
            for partition in range(3):
                await produce(cluster, "t", numbers(20_000), partition, compression=compression)
            seen: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
            for record in await take(consumer, 25_000):
                assert record.offset == len(seen[record.partition])
                seen[record.partition].append(record.value)
            async for batch in consumer.batches(max_bytes=100_000):
                (partition,) = set(batch.column("partition").to_pylist())
                assert set(batch.column("topic").to_pylist()) == {"t"}
                assert batch.column("offset")[0].as_py() == len(seen[partition])
                seen[partition] += batch.column("value").to_pylist()
                if sum(map(len, seen.values())) == 60_000:
                    break
            assert all(rows == numbers(20_000) for rows in seen.values())

    run(test())


def test_memory_is_bounded_and_small_allowances_still_read_everything() -> None:
    async def test() -> None:
        async with world(2, queued_max_bytes=20_000, max_partition_fetch_bytes=5_000) as (cluster, consumer):
            for partition in range(2):
                await produce(cluster, "t", [b"x" * 500] * 200, partition, batch_size=2_000)
            count = 0
            async for _ in consumer:
                count += 1
                assert consumer._running().partitions.queued <= 20_000 + 2_100
                if count == 400:
                    break

    run(test())


def test_a_record_that_is_larger_than_the_fetch_size_still_comes() -> None:
    async def test() -> None:
        async with world(max_partition_fetch_bytes=100, fetch_max_bytes=100, queued_max_bytes=100) as (
            cluster,
            consumer,
        ):
            await produce(cluster, "t", [b"x" * 50_000, b"y"], batch_size=10)
            assert [len(value) for value in values(await take(consumer, 2))] == [50_000, 1]  # type: ignore[arg-type]

    run(test())


def test_pausing_takes_back_what_was_not_given_and_resuming_goes_on() -> None:
    async def test() -> None:
        async with world(2) as (cluster, consumer):
            for partition in range(2):
                await produce(cluster, "t", numbers(100), partition)
            seen: dict[int, list[int]] = {0: [], 1: []}
            first = -1
            async for record in consumer:
                seen[record.partition].append(record.offset)
                if first < 0 and len(seen[record.partition]) == 10:
                    first = record.partition
                    consumer.pause(("t", first))
                    assert consumer.paused() == {("t", first)}
                if len(seen[0]) + len(seen[1]) == 110:
                    break
            assert [len(seen[first]), len(seen[1 - first])] == [10, 100]
            assert await consumer.poll(timeout_ms=20) == []
            consumer.resume(("t", first))
            async for record in consumer:
                seen[record.partition].append(record.offset)
                if len(seen[first]) == 100:
                    break
            assert seen == {0: list(range(100)), 1: list(range(100))}

    run(test())


def test_what_is_queued_of_paused_partitions_does_not_hold_up_the_others() -> None:
    async def test() -> None:
        async with world(2, queued_max_bytes=3_000, max_partition_fetch_bytes=2_000) as (cluster, consumer):
            await produce(cluster, "t", [b"x" * 500] * 50, 0, batch_size=700)
            await take(consumer, 1)
            await until(lambda: consumer._running().partitions.queued > 1_000)
            consumer.pause(T0)
            await produce(cluster, "t", [b"y" * 500] * 50, 1, batch_size=700)
            assert {record.partition for record in await take(consumer, 50)} == {1}
            consumer.resume(T0)
            assert [record.offset for record in await take(consumer, 49)] == list(range(1, 50))

    run(test())


def test_seeking_in_the_loop_drops_what_was_fetched() -> None:
    async def test() -> None:
        async with world() as (cluster, consumer):
            await produce(cluster, "t", numbers(100))
            seen = []
            async for record in consumer:
                seen.append(record.offset)
                if len(seen) == 3:
                    consumer.seek(T0, 50)
                    assert consumer.position(T0) == 50
                if len(seen) == 5:
                    break
            assert seen == [0, 1, 2, 50, 51]
            consumer.seek(T0, 20)
            assert [record.offset for record in await consumer.poll(2)] == [20, 21]
            with pytest.raises(ValueError, match="negative"):
                consumer.seek(T0, -1)
            with pytest.raises(ValueError, match="t-7 isn't assigned to this consumer, but t-0"):
                consumer.seek(("t", 7), 0)

    run(test())


def test_a_seek_during_a_long_poll_does_not_wait_for_its_end() -> None:
    async def test() -> None:
        async with world(fetch_max_wait_ms=60_000) as (cluster, consumer):
            await produce(cluster, "t", numbers(10))
            await take(consumer, 10)
            await asyncio.sleep(0.05)  # the next fetch is held back by now, or it isn't: the same must come of it
            consumer.seek(T0, 5)
            assert values(await take(consumer, 5)) == numbers(5, 5)

    run(test(), timeout_s=10)


@pytest.mark.parametrize("way", ["records", "batches"])
def test_who_gives_up_waiting_goes_on_with_the_same_loop(way: str) -> None:
    async def test() -> None:
        async with world() as (cluster, consumer):
            loop: Any = aiter(consumer) if way == "records" else consumer.batches(max_bytes=1)
            for number in range(3):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.02):
                        await anext(loop)
                await produce(cluster, "t", numbers(1, number))
                given = await anext(loop)
                assert (given.offset if way == "records" else given["offset"].to_pylist()[0]) == number
            await consumer.close()
            with pytest.raises(StopAsyncIteration):
                await anext(loop)

    run(test())


def test_a_loop_goes_on_after_a_record_that_cannot_be_read() -> None:
    async def test() -> None:
        async with world(value_deserializer=int) as (cluster, consumer):
            await produce(cluster, "t", [b"0", b"one", b"2"])
            loop = aiter(consumer)
            assert (await anext(loop)).value == 0
            with pytest.raises(RecordError) as caught:
                await anext(loop)
            consumer.seek(T0, caught.value.next_offset)
            assert (await anext(loop)).value == 2

    run(test())


def test_batches_that_expand_far_are_not_taken_for_corrupt() -> None:
    async def test() -> None:
        async with world() as (cluster, consumer):
            batch = encode_rows([0] * 300, [None] * 300, [bytes(100_000)] * 300, compression=Compression.ZSTD)
            await append(cluster, "t", [batch] * 6)  # 180 MB, in one answer of some KB
            await columns_loaded()
            count = 0
            async for record in consumer:
                assert record.offset == count
                count += 1
                if count == 1_800:
                    break

    run(test())


def test_ends_times_and_lag() -> None:
    async def test() -> None:
        async with world(auto_offset_reset="latest") as (cluster, consumer):
            await produce(cluster, "t", numbers(10))  # with times 0 to 9
            assert await consumer.beginning_offsets(T0) == {T0: 0}
            assert await consumer.end_offsets() == {T0: 10}
            found = await consumer.offsets_for_times({T0: 4})
            assert found[T0] is not None and found[T0][:2] == (4, 4)
            assert await consumer.offsets_for_times({T0: 100}) == {T0: None}
            await consumer.seek_to_time({T0: 7})
            assert await consumer.lag() == {T0: 3}
            assert values(await take(consumer, 1)) == [b"7"]
            await consumer.seek_to_beginning()
            assert values(await take(consumer, 1)) == [b"0"]
            await consumer.seek_to_time({T0: 100})
            assert consumer.position(T0) == 10
            await consumer.seek_to_end(T0)
            assert consumer.position(T0) == 10
            assert [each.partition for each in await consumer.partitions_for("t")] == [0]
            assert await consumer.topics() == {"t"}

    run(test())


@pytest.mark.parametrize(("policy", "expected"), [("earliest", b"0"), ("by_duration:PT1H", b"new"), ("latest", b"new")])
def test_where_nothing_is_known_the_policy_decides(policy: str, expected: bytes) -> None:
    async def test() -> None:
        async with world(auto_offset_reset=policy) as (cluster, consumer):
            if policy == "earliest":
                await produce(cluster, "t", numbers(3))
            else:
                await until(lambda: consumer.position(T0) is not None)
                await produce(cluster, "t", [b"new"])
            assert values(await take(consumer, 1)) == [expected]
            consumer.seek(T0, 1_000)  # out of range
            if policy != "earliest":
                await until(lambda: consumer.position(T0) not in (None, 1_000))
                await produce(cluster, "t", [b"new"])
            assert values(await take(consumer, 1)) == [expected]

    run(test())


def test_without_a_policy_the_user_hears_which_partitions_have_no_offset() -> None:
    async def test() -> None:
        async with world(auto_offset_reset="none") as (cluster, consumer):
            await produce(cluster, "t", numbers(3))
            for _ in range(2):  # and again, until they seek
                with pytest.raises(NoOffsetError, match="t-0: the group has committed no offset") as caught:
                    await take(consumer, 1)
                assert caught.value.partitions == {T0: None}
            consumer.seek(T0, 1)
            assert values(await take(consumer, 1)) == [b"1"]
            consumer.seek(T0, 99)
            with pytest.raises(NoOffsetError, match=r"t-0 \(offset 99\)"):
                await take(consumer, 1)

    run(test())


def test_a_topic_made_anew_is_read_from_its_beginning() -> None:
    async def test() -> None:
        async with world() as (cluster, consumer):
            await produce(cluster, "t", numbers(3))
            assert values(await take(consumer, 2)) == numbers(2)
            await delete_topic(cluster, "t")
            await create_topic(cluster, "t")
            await cluster.refresh()
            await produce(cluster, "t", numbers(5, 100))
            rest = values(await take(consumer, 5))
            if rest[0] == b"2":  # it was fetched before the topic went
                rest = rest[1:] + values(await take(consumer, 1))
            assert rest == numbers(5, 100)

    run(test())


def test_deserializers_make_values_and_their_errors_say_where() -> None:
    async def test() -> None:
        async with world(value_deserializer=int, key_deserializer=bytes.decode) as (cluster, consumer):
            await append(cluster, "t", [encode_rows([1] * 4, [b"k", None, b"k", b"k"], [b"1", None, b"three", b"4"])])
            assert [(each.key, each.value) for each in await take(consumer, 2)] == [("k", 1), (None, None)]
            for _ in range(2):
                with pytest.raises(
                    RecordError, match=r"t-0, offset 2: the value deserializer fails: ValueError"
                ) as caught:
                    await take(consumer, 1)
            error = caught.value
            assert (error.partition, error.offset, error.next_offset) == (T0, 2, 3)
            assert consumer.position(T0) == 2
            consumer.seek(error.partition, error.next_offset)
            assert values(await take(consumer, 1)) == [4]

    run(test())


def test_only_one_task_reads() -> None:
    async def test() -> None:
        async with world() as (cluster, consumer):
            waiting = asyncio.create_task(consumer.poll(timeout_ms=10_000), name="first")
            await asyncio.sleep(0)
            with pytest.raises(ClientError, match=r"another task \(first\) reads from this consumer"):
                await take(consumer, 1)
            await produce(cluster, "t", numbers(3))
            assert len(await waiting) == 3

            async def second() -> None:
                assert values(await take(consumer, 1)) == [b"3"]

            await produce(cluster, "t", numbers(3, 3))
            await asyncio.create_task(second())
            assert values(await take(consumer, 1)) == [b"4"]  # the other task has left its loop
            loop = aiter(consumer)
            assert (await anext(loop)).value == b"5"
            with pytest.raises(ClientError, match="another task"):
                await asyncio.create_task(second())
            del loop

    run(test())


def test_closing_ends_loops_inside_and_outside() -> None:
    async def test() -> None:
        async with world() as (cluster, consumer):
            await produce(cluster, "t", numbers(3))
            seen = []
            async for record in consumer:
                seen.append(record.value)
                await consumer.close()
            assert seen == [b"0"]
            with pytest.raises(ClosedError):
                await take(consumer, 1)
            await consumer.close()
        async with world() as (cluster, consumer):
            waiting = asyncio.create_task(take(consumer, 1))
            await asyncio.sleep(0.02)
            await consumer.close()
            assert await waiting == []

    run(test())


def test_what_cannot_be_is_said_at_once() -> None:
    async def test() -> None:
        consumer = Consumer("127.0.0.1:1")
        with pytest.raises(ClientError, match="isn't started"):
            consumer.position(T0)
        await consumer.close()
        async with world() as (_, consumer):
            with pytest.raises(ClientError, match="needs a group_id"):
                consumer.subscribe("t")
            with pytest.raises(ClientError, match="group_id"):
                await consumer.commit()
            consumer.unsubscribe()
            assert consumer.assignment() == set()
            with pytest.raises(ClientError, match="nothing to read"):
                await take(consumer, 1)

    run(test())
