"""Kohort's share consumers: what one of them accepts nobody gets again, and what it releases others do."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import NewTopic as TopicToCreate

from kohort.client import AcknowledgeType, Admin, ClientConfig, ShareConsumer, ShareRecord, TopicPartition
from kohort.client.admin import ConfigResource, ResourceType
from kohort.client.share_consumer import AcknowledgementResult, OffsetSpan, SharedRecordError
from kohort.protocol.errors import ErrorCode, KafkaError

from ...waiting import run, until
from ..newest_kafka import KafkaCluster
from ..servers import Server
from ..topics import create_topic
from .records import by_partition, numbered, write

NewTopic = Callable[..., str]
NewName = Callable[[], str]

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


async def set_group(bootstrap: str, group: str, **configs: str) -> None:
    """Configs of a share group, which reads from the beginning."""
    given = {"share.auto.offset.reset": "earliest"} | {
        f"share.{key.replace('_', '.')}": value for key, value in configs.items()
    }
    async with Admin(bootstrap) as admin:
        await admin.configs.alter(ConfigResource(ResourceType.GROUP, group), set=given)


async def take(consumer: ShareConsumer, count: int) -> list[ShareRecord]:
    """The next so many records, in a loop that is left then."""
    found: list[ShareRecord] = []
    async for record in consumer:
        found.append(record)
        if len(found) == count:
            break
    return found


def places(records: list[ShareRecord]) -> Counter[tuple[int, int]]:
    return Counter((record.partition, record.offset) for record in records)


def test_what_was_accepted_is_not_seen_again(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    """In the implicit mode: records are accepted as the loop goes on, the last one with the block's end."""
    topic, group, values = new_topic(3), new_name(), numbered(3, 1000)
    write(broker.bootstrap, topic, values)
    results: list[AcknowledgementResult] = []

    async def scenario() -> None:
        await set_group(broker.bootstrap, group)
        async with ShareConsumer(broker.bootstrap, group_id=group, on_acknowledged=results.append) as consumer:
            consumer.subscribe(topic)
            found = await take(consumer, 3000)
            assert by_partition(found) == values  # type: ignore[arg-type]
            assert {record.delivery_count for record in found} == {1}
            assert consumer.assignment() == {TopicPartition(topic, n) for n in range(3)}
        write(broker.bootstrap, topic, {0: [b"last"]})
        async with ShareConsumer(broker.bootstrap, group_id=group) as consumer:
            consumer.subscribe(topic)
            assert [record.value for record in await take(consumer, 1)] == [b"last"]
            assert await consumer.poll(timeout_ms=300) == []

    run(scenario())
    assert all(result.error is None for result in results)
    accepted = sum(last - first + 1 for result in results for first, last, _ in result.acknowledgements)
    assert accepted == 3000


def test_an_exception_in_the_loop_gives_the_record_to_the_next_member(
    broker: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, group = new_topic(1), new_name()
    write(broker.bootstrap, topic, numbered(1, 10))

    async def scenario() -> None:
        await set_group(broker.bootstrap, group)
        with pytest.raises(ZeroDivisionError):
            async with ShareConsumer(broker.bootstrap, group_id=group) as consumer:
                consumer.subscribe(topic)
                async for record in consumer:
                    1 / (record.offset - 4)
        async with ShareConsumer(broker.bootstrap, group_id=group) as consumer:
            consumer.subscribe(topic)
            found = await take(consumer, 6)
        assert [record.offset for record in found] == [4, 5, 6, 7, 8, 9]
        assert {record.delivery_count for record in found} == {2}, "they were locked, and released"

    run(scenario())


def test_records_acknowledged_one_by_one(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    """Accepted and rejected ones don't come back, released ones do, with a higher count."""
    topic, group = new_topic(1), new_name()
    write(broker.bootstrap, topic, numbered(1, 30))

    async def scenario() -> None:
        await set_group(broker.bootstrap, group)
        async with ShareConsumer(broker.bootstrap, group_id=group, share_acknowledgement_mode="explicit") as consumer:
            consumer.subscribe(topic)
            for record in await take(consumer, 30):
                consumer.acknowledge(record, (ACCEPT, RELEASE, REJECT)[record.offset % 3])
            assert await consumer.commit() == {TopicPartition(topic, 0): None}
            again = await take(consumer, 10)
            assert [record.offset for record in again] == list(range(1, 30, 3))
            assert {record.delivery_count for record in again} == {2}
            consumer.acknowledge(again)
            assert await consumer.commit() == {TopicPartition(topic, 0): None}
            assert await consumer.poll(timeout_ms=300) == []

    run(scenario())


def test_a_second_acknowledgement_is_reported_as_failed(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic, group = new_topic(1), new_name()
    write(broker.bootstrap, topic, numbered(1, 3))
    results: list[AcknowledgementResult] = []

    async def scenario() -> None:
        await set_group(broker.bootstrap, group)
        async with ShareConsumer(
            broker.bootstrap, group_id=group, share_acknowledgement_mode="explicit", on_acknowledged=results.append
        ) as consumer:
            consumer.subscribe(topic)
            first, *_ = await take(consumer, 3)
            consumer.acknowledge(first)
            consumer.acknowledge(first, RELEASE)
            await consumer.commit()
            consumer.acknowledge((TopicPartition(topic, 0), [OffsetSpan(1, 2)]), ACCEPT)
            await consumer.commit()

    run(scenario())
    failed = [each for each in results if each.error is not None]
    assert [
        (tuple(each.acknowledgements[0]), each.error.code) for each in failed if isinstance(each.error, KafkaError)
    ] == [((0, 0, RELEASE), ErrorCode.INVALID_RECORD_STATE)]
    done = [tuple(ack) for each in results if each.error is None for ack in each.acknowledgements]
    assert done == [(0, 0, ACCEPT), (1, 2, ACCEPT)]


def test_arrow_batches_and_parts_of_them(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic, group = new_topic(2), new_name()
    write(broker.bootstrap, topic, numbered(2, 500))

    async def scenario() -> None:
        await set_group(broker.bootstrap, group)
        rows = 0
        async with ShareConsumer(broker.bootstrap, group_id=group, share_acknowledgement_mode="explicit") as consumer:
            consumer.subscribe(topic)
            async for batch in consumer.batches():
                assert pa.types.is_int16(batch.schema.field("delivery_count").type)
                odd = pa.array([offset % 2 == 1 for offset in batch.column("offset").to_pylist()])
                if batch.column("delivery_count")[0].as_py() == 1:
                    consumer.acknowledge(batch.filter(odd))
                    consumer.acknowledge(batch.filter(pa.compute.invert(odd)), RELEASE)
                else:
                    rows += batch.num_rows
                    assert not any(odd.to_pylist())
                    consumer.acknowledge(batch)
                if rows == 500:
                    break
            assert all(error is None for error in (await consumer.commit()).values())
        async with ShareConsumer(broker.bootstrap, group_id=group) as consumer:
            consumer.subscribe(topic)
            assert await consumer.poll(timeout_ms=1000) == []

    run(scenario())


def test_three_members_share_and_nothing_comes_twice(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic, group = new_topic(2), new_name()
    seen: list[ShareRecord] = []

    async def member(stop: asyncio.Event, counts: Counter[str]) -> None:
        async with ShareConsumer(broker.bootstrap, group_id=group, max_poll_records=20) as consumer:
            consumer.subscribe(topic)
            while not stop.is_set():
                found = await consumer.poll(timeout_ms=200)
                seen.extend(found)
                counts[consumer.member_id] += len(found)

    async def scenario() -> None:
        await set_group(broker.bootstrap, group)
        stop, counts = asyncio.Event(), Counter[str]()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(member(stop, counts))
            for first in range(0, 1000, 100):
                await asyncio.to_thread(write, broker.bootstrap, topic, numbered(2, 100, first))
            await until(lambda: len(seen) >= 2000, "all is read")
            stop.set()
        assert len(counts) == 3

    run(scenario())
    assert set(places(seen).values()) == {1} and len(seen) == 2000


def test_a_lock_is_renewed_while_the_body_works(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    """Longer than the lock lasts, and nobody else gets the record; without renewal, it's handed out again."""
    topic, group = new_topic(1), new_name()
    write(broker.bootstrap, topic, numbered(1, 1))

    async def scenario() -> None:
        await set_group(broker.bootstrap, group, record_lock_duration_ms="3000")
        async with (
            ShareConsumer(broker.bootstrap, group_id=group) as worker,
            ShareConsumer(broker.bootstrap, group_id=group) as other,
        ):
            worker.subscribe(topic)
            async for record in worker:
                other.subscribe(topic)
                assert await other.poll(timeout_ms=5_000) == []
                worker.acknowledge(record)
                assert await worker.commit() == {TopicPartition(topic, 0): None}
                break
        write(broker.bootstrap, topic, numbered(1, 1))
        results: list[AcknowledgementResult] = []
        async with (
            ShareConsumer(
                broker.bootstrap, group_id=group, lock_renewal_ms=0, on_acknowledged=results.append
            ) as worker,
            ShareConsumer(broker.bootstrap, group_id=group) as other,
        ):
            worker.subscribe(topic)
            (record,) = await take(worker, 1)
            other.subscribe(topic)
            (again,) = await take(other, 1)
            assert (again.offset, again.delivery_count) == (record.offset, 2)
            worker.acknowledge(record)
            errors = await worker.commit()
            assert isinstance(errors[TopicPartition(topic, 0)], KafkaError)
        assert [isinstance(each.error, KafkaError) for each in results] == [True]

    run(scenario())


def test_a_strict_limit_locks_no_more_than_asked_for(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    """KIP-1206: two members get every other record of one batch."""
    topic, group = new_topic(1), new_name()
    write(broker.bootstrap, topic, numbered(1, 9))

    async def scenario() -> None:
        await set_group(broker.bootstrap, group)
        strict = {"share_acquire_mode": "record_limit", "max_poll_records": 1}
        async with (
            ShareConsumer(broker.bootstrap, group_id=group, **strict) as one,  # type: ignore[arg-type]
            ShareConsumer(broker.bootstrap, group_id=group, **strict) as two,  # type: ignore[arg-type]
        ):
            one.subscribe(topic)
            two.subscribe(topic)
            found = [record for _ in range(4) for consumer in (one, two) for record in await take(consumer, 1)]
            assert [record.offset for record in found] == list(range(8))
            assert {record.delivery_count for record in found} == {1}

    run(scenario())


def test_a_record_that_cannot_be_read_is_told_and_the_loop_goes_on(
    broker: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, group = new_topic(1), new_name()
    write(broker.bootstrap, topic, {0: [b"1", b"two", b"3"]})

    async def scenario() -> None:
        await set_group(broker.bootstrap, group)
        found: list[ShareRecord] = []
        errors: list[SharedRecordError] = []
        async with ShareConsumer(broker.bootstrap, group_id=group, value_deserializer=int) as consumer:
            consumer.subscribe(topic)
            while len(found) < 2 or len(errors) < 2:
                try:
                    found += await take(consumer, 1)
                except SharedRecordError as error:
                    errors.append(error)
                    if len(errors) == 2:  # it came again: enough of it
                        break
        assert [record.value for record in found] == [1, 3]
        assert {(error.first_offset, error.last_offset) for error in errors} == {(1, 1)}

    run(scenario())


def test_after_a_broker_was_killed_nothing_is_lost_and_nothing_accepted_comes_again(
    own_broker: Server, new_name: NewName
) -> None:
    """The consumer goes on by itself with the broker that starts again."""
    topic, group = new_name(), new_name()
    bootstrap = own_broker.bootstrap
    create_topic(AdminClient({"bootstrap.servers": bootstrap}), topic)
    write(bootstrap, topic, numbered(1, 200))
    results: list[AcknowledgementResult] = []
    seen: list[ShareRecord] = []

    async def scenario() -> None:
        await set_group(bootstrap, group)
        config = ClientConfig(bootstrap_servers=bootstrap, reconnect_backoff_max_ms=200, retry_backoff_max_ms=200)
        async with ShareConsumer(
            config, group_id=group, max_poll_records=20, on_acknowledged=results.append
        ) as consumer:
            consumer.subscribe(topic)
            seen.extend(await take(consumer, 90))
            await consumer.commit()
            await asyncio.to_thread(own_broker.kill)
            await asyncio.to_thread(own_broker.start)
            while len({record.offset for record in seen}) < 200:
                seen.extend(await consumer.poll(timeout_ms=200))
            await consumer.commit()

    run(scenario())
    accepted: Counter[int] = Counter()
    for result in results:
        if result.error is None:
            accepted.update(
                n for first, last, kind in result.acknowledgements if kind == ACCEPT for n in range(first, last + 1)
            )
    assert set(accepted.values()) == {1}
    deliveries = Counter(record.offset for record in seen)
    assert not [offset for offset in range(90) if deliveries[offset] > 1]
    assert set(accepted) == set(range(200))


@pytest.mark.long
@pytest.mark.parametrize("mode", [{}, {"share_acquire_mode": "record_limit"}], ids=["ahead", "strict"])
def test_one_of_three_brokers_is_killed_and_nothing_is_lost(cluster: KafkaCluster, mode: dict[str, str]) -> None:
    """Two members go on with the new leaders; what an answer said was accepted is accepted once."""
    topic, partitions, count = "queue", 6, 300
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([TopicToCreate(topic, num_partitions=partitions, replication_factor=3)])[topic].result(20)
    write(cluster.bootstrap, topic, numbered(partitions, count))
    accepted: Counter[tuple[int, int]] = Counter()
    seen: set[tuple[int, int]] = set()

    async def all_done() -> bool:
        async with Admin(cluster.bootstrap) as admin:
            lags = await admin.group_offsets.lag("team")
        return len(lags) == partitions and {each.lag for each in lags.values()} == {0}

    def told(result: AcknowledgementResult) -> None:
        if result.error is None:
            accepted.update(
                (result.partition.partition, offset)
                for first, last, kind in result.acknowledgements
                if kind == ACCEPT
                for offset in range(first, last + 1)
            )

    async def member(config: ClientConfig, begun: asyncio.Event, done: asyncio.Event) -> None:
        async with ShareConsumer(
            config,
            group_id="team",
            max_poll_records=20,
            on_acknowledged=told,
            **mode,  # type: ignore[arg-type]
        ) as consumer:
            consumer.subscribe(topic)
            while not done.is_set():
                seen.update((record.partition, record.offset) for record in await consumer.poll(timeout_ms=100))
                if len(accepted) > partitions * count // 3:
                    begun.set()

    async def scenario() -> None:
        await set_group(cluster.bootstrap, "team", record_lock_duration_ms="2000")
        config = ClientConfig(bootstrap_servers=cluster.bootstrap, retry_backoff_max_ms=200)
        begun, done = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(2):
                tasks.create_task(member(config, begun, done))
            await begun.wait()
            await asyncio.to_thread(cluster.nodes[3].kill)
            await until(all_done, "nothing is left")
            done.set()

    run(scenario(), timeout_s=120)
    assert len(seen) == partitions * count
    assert {place for place, times in accepted.items() if times > 1} == set()
