"""Reading as a member of a group, from a broker in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kohort.client.cluster import Cluster
from kohort.client.config import ClientConfig
from kohort.client.consumer import Consumer
from kohort.client.errors import ClientError, ConfigError
from kohort.client.membership.member_states import State
from kohort.client.types import OffsetAndMetadata, Record, TopicPartition
from kohort.testing.broker import Broker
from tests.client.consuming.support import create_topic, produce, take, values
from tests.client.support.older_python import time_out_as_older_python
from tests.waiting import run, until

T0 = TopicPartition("t", 0)


@asynccontextmanager
async def world(partitions: int = 1) -> AsyncIterator[tuple[str, Cluster]]:
    """A broker with a topic, and a client to write to it."""
    async with Broker() as broker, Cluster(broker.bootstrap_servers) as cluster:
        await create_topic(cluster, "t", partitions)
        yield broker.bootstrap_servers, cluster


def member(servers: str, **settings: Any) -> Consumer:
    return Consumer(
        servers,
        **{"group_id": "g", "auto_offset_reset": "earliest", "heartbeat_interval_ms": 100, **settings},
    )


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


def test_what_is_committed_is_where_the_next_member_begins() -> None:
    async def test() -> None:
        async with world() as (servers, cluster):
            await produce(cluster, "t", numbers(10))
            async with member(servers) as consumer:
                consumer.subscribe("t")
                assert values(await take(consumer, 4)) == numbers(4)
                assert consumer.assignment() == {T0}
            async with member(servers, enable_auto_commit=False) as consumer:  # closing has committed all 4
                assert await consumer.committed(T0) == {T0: OffsetAndMetadata(4, 0)}
                consumer.subscribe("t")
                async for record in consumer:
                    assert record.value == b"4"
                    await consumer.commit()  # with the record in hands
                    break
                assert (await consumer.committed())[T0] == (5, 0, "")
                assert len(await take(consumer, 2)) == 2
                assert consumer.group_metadata().generation > 0
            async with member(servers) as consumer:
                consumer.subscribe("t")
                assert values(await take(consumer, 1)) == [b"5"]
                calls: list[object] = []
                consumer.commit_soon({T0: 7}, lambda offsets, error: calls.append((offsets, error)))
                await until(lambda: calls)
                assert calls == [({T0: (7, -1, "")}, None)]
                assert (await consumer.committed(T0))[T0] == (7, -1, "")

    run(test())


def test_an_automatic_commit_leaves_out_the_record_in_hands() -> None:
    async def test() -> None:
        async with world() as (servers, cluster), member(servers, auto_commit_interval_ms=20) as consumer:
            await produce(cluster, "t", numbers(10))
            consumer.subscribe("t")
            async for record in consumer:
                if record.offset == 5:
                    async with asyncio.timeout(5):
                        while (await consumer.committed(T0))[T0] != (5, 0, ""):
                            await asyncio.sleep(0.01)
                if record.offset == 9:
                    break

    run(test())


def test_an_automatic_commit_leaves_out_the_list_in_hands() -> None:
    async def test() -> None:
        async with world() as (servers, cluster), member(servers, auto_commit_interval_ms=10) as consumer:
            await produce(cluster, "t", numbers(10))
            consumer.subscribe("t")
            assert len(await consumer.poll(4, timeout_ms=5_000)) == 4
            assert len(await consumer.poll(4)) == 4
            async with asyncio.timeout(5):
                while (await consumer.committed(T0))[T0] != (4, 0, ""):
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)  # and some commits more
            assert (await consumer.committed(T0))[T0] == (4, 0, "")
            await consumer.commit()
            assert (await consumer.committed(T0))[T0] == (8, 0, "")

    run(test())


def test_what_a_commit_callback_raises_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with world() as (servers, _), member(servers) as consumer:
            consumer.assign([T0])
            consumer.commit_soon({T0: 7}, lambda offsets, error: 1 // 0)  # type: ignore[arg-type,return-value]
            await until(lambda: "commit_soon: the callback fails" in caplog.text)

    run(test())


@pytest.mark.parametrize("older", [False, True], ids=["this Python", "Python 3.11.2"])
def test_a_close_that_is_cancelled_leaves_nothing_running(older: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if older:
        time_out_as_older_python(monkeypatch)

    async def test() -> None:
        async with world() as (servers, cluster):
            await produce(cluster, "t", numbers(3))
            consumer = member(servers)
            await consumer.start()
            consumer.subscribe("t")
            assert values(await take(consumer, 3)) == numbers(3)
            running = consumer._running()
            assert running.connector is not None and running.commits is not None
            await running.commits._lock.acquire()  # as if the commit before were never answered
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await consumer.close()
            assert running.connector.state is State.UNSUBSCRIBED
            names = {task.get_name() for task in asyncio.all_tasks()}
            assert not {name for name in names if name.startswith(("kohort-rebalance", "kohort-positions"))}

    run(test())


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_members_share_partitions_and_every_record_is_read_once(strategy: str) -> None:
    async def test() -> None:
        async with world(4) as (servers, cluster):
            seen: list[Record] = []

            async def read(consumer: Consumer) -> None:
                async for record in consumer:
                    seen.append(record)  # noqa: PERF401  # others look at it meanwhile

            for partition in range(4):
                await produce(cluster, "t", numbers(500), partition)
            async with member(servers, partition_assignment_strategy=strategy) as first:
                first.subscribe("t")
                reading = asyncio.create_task(read(first))
                await until(lambda: len(seen) == 2_000)
                async with member(servers, partition_assignment_strategy=strategy) as second:
                    second.subscribe("t")
                    also = asyncio.create_task(read(second))
                    await until(lambda: len(first.assignment()) == len(second.assignment()) == 2)
                    assert not first.assignment() & second.assignment()
                    for partition in range(4):
                        await produce(cluster, "t", numbers(500, 500), partition)
                    await until(lambda: len(seen) >= 4_000)
                await also
                await until(lambda: len(first.assignment()) == 4)
                for partition in range(4):
                    await produce(cluster, "t", numbers(10, 1_000), partition)
                await until(lambda: len(seen) >= 4_040)
            await reading
            assert sorted((each.partition, each.offset) for each in seen) == [
                (partition, offset) for partition in range(4) for offset in range(1_010)
            ]

    run(test())


def test_a_rebalance_waits_for_the_body_of_the_loop_and_tells_the_callbacks() -> None:
    async def test() -> None:
        async with world(2) as (servers, cluster):
            for partition in range(2):
                await produce(cluster, "t", numbers(100), partition)
            calls: list[tuple[str, set[TopicPartition]]] = []
            busy = True

            async def revoked(partitions: set[TopicPartition]) -> None:
                assert not busy
                calls.append(("revoke", partitions))

            async with member(servers) as first, member(servers) as second:
                first.subscribe("t", on_assign=lambda some: calls.append(("assign", some)), on_revoke=revoked)
                given = 0
                async for record in first:
                    given += 1
                    if given == 1:
                        assert calls == [("assign", {("t", 0), ("t", 1)})]
                        second.subscribe("t")
                        await asyncio.sleep(0.5)  # while the group rebalances: the body isn't interrupted
                        assert len(calls) == 1
                        assert second.assignment() == set()
                        busy = False
                    if len(calls) > 2:
                        break
                    if record.offset == 99:  # two partitions can't be read to their ends in between
                        assert len(first.assignment()) < 2
                assert calls[1] == ("revoke", {("t", 0), ("t", 1)})
                assert calls[2][0] == "assign"
                await until(lambda: len(second.assignment()) == 1)
                (theirs,) = second.assignment()
                committed = (await first.committed(theirs))[theirs]
                (record,) = await take(second, 1)
                assert record.offset == (0 if committed is None else committed.offset)

    run(test())


def test_seeking_where_partitions_are_assigned() -> None:
    async def test() -> None:
        async with world() as (servers, cluster), member(servers) as consumer:
            await produce(cluster, "t", numbers(10))
            consumer.subscribe("t", on_assign=lambda some: [consumer.seek(each, 7) for each in some] and None)
            assert values(await take(consumer, 1)) == [b"7"]

    run(test())


def test_nothing_is_given_before_the_callback_for_new_partitions_returns() -> None:
    async def test() -> None:
        async with world() as (servers, cluster), member(servers) as consumer:
            await produce(cluster, "t", numbers(10))
            ready = False

            async def assigned(partitions: set[TopicPartition]) -> None:
                nonlocal ready
                consumer.seek(T0, 7)
                await asyncio.sleep(0.1)  # it's fetched meanwhile
                ready = True

            consumer.subscribe("t", on_assign=assigned)
            assert values(await take(consumer, 1)) == [b"7"]
            assert ready

    run(test())


def test_patterns_find_topics_that_come_later() -> None:
    async def test() -> None:
        async with world() as (servers, cluster), Consumer(
            ClientConfig(bootstrap_servers=servers, metadata_max_age_ms=100),
            group_id="g", auto_offset_reset="earliest", heartbeat_interval_ms=50,
        ) as consumer:  # fmt: skip
            consumer.subscribe(pattern="t|u.*")
            await produce(cluster, "t", numbers(1))
            assert values(await take(consumer, 1)) == [b"0"]
            assert consumer.subscription().pattern == "t|u.*"
            await create_topic(cluster, "unit")
            await create_topic(cluster, "not-unit")
            await produce(cluster, "unit", numbers(1, 5))
            assert values(await take(consumer, 1)) == [b"5"]
            assert consumer.assignment() == {T0, ("unit", 0)}
            with pytest.raises(ConfigError, match="isn't a regular expression"):
                consumer.subscribe(pattern="(")

    run(test())


def test_unsubscribing_leaves_the_group_and_subscribing_joins_again() -> None:
    async def test() -> None:
        async with world() as (servers, cluster), member(servers) as consumer:
            await produce(cluster, "t", numbers(10))
            consumer.subscribe("t")
            with pytest.raises(ClientError, match="unsubscribe first"):
                consumer.assign([T0])
            assert values(await take(consumer, 3)) == numbers(3)
            consumer.unsubscribe()
            await until(lambda: not consumer.assignment())
            with pytest.raises(ClientError, match="nothing to read"):
                await take(consumer, 1)
            consumer.subscribe("t")
            assert (await take(consumer, 1))[0].offset in (2, 3)  # the last one wasn't known to be consumed

    run(test())


def test_an_assignment_after_unsubscribing_need_not_wait_until_the_group_is_left() -> None:
    async def test() -> None:
        async with world() as (servers, cluster), member(servers) as consumer:
            await create_topic(cluster, "u")
            await produce(cluster, "t", numbers(10))
            await produce(cluster, "u", numbers(10))
            consumer.subscribe("t")
            assert values(await take(consumer, 3)) == numbers(3)
            consumer.unsubscribe()
            assert consumer.assignment() == {T0}  # it takes a moment
            consumer.subscribe("u")
            assert [(record.topic, record.offset) for record in await take(consumer, 3)] == [
                ("u", 0), ("u", 1), ("u", 2),
            ]  # fmt: skip
            consumer.unsubscribe()
            assert consumer.assignment()
            consumer.assign([T0, ("u", 0)])
            connector = consumer._running().connector
            assert connector is not None
            await until(lambda: connector.state is State.UNSUBSCRIBED)
            assert consumer.assignment() == {T0, ("u", 0)}
            assert len(await take(consumer, 10)) == 10
            with pytest.raises(ClientError, match="assigned by hand"):
                consumer.subscribe("t")

    run(test())


def test_a_topic_that_is_not_there_is_created_for_who_subscribes() -> None:
    async def test() -> None:
        async with world() as (servers, cluster), member(servers) as consumer:
            consumer.subscribe("new")
            await until(consumer.assignment)
            await produce(cluster, "new", [b"x"])
            assert values(await take(consumer, 1)) == [b"x"]

    run(test())


def test_a_member_whose_user_is_away_too_long_gives_way_and_comes_back() -> None:
    async def test() -> None:
        async with world() as (servers, cluster):
            await produce(cluster, "t", numbers(10))
            lost: list[set[TopicPartition]] = []
            slow = {"max_poll_interval_ms": 300, "session_timeout_ms": 6_000}
            async with member(servers, **slow) as first, member(servers) as second:
                first.subscribe("t", on_revoke=lost.append)
                loop = aiter(first)
                assert (await anext(loop)).offset == 0
                second.subscribe("t")
                assert values(await take(second, 10)) == numbers(10)  # the first one has said nothing of its record
                # It leaves by itself, or the coordinator goes on without it, which it hears of later.
                await until(lambda: {T0} in lost)
                await second.close()
                assert first.assignment() == set()
                await produce(cluster, "t", numbers(1, 10))
                assert (await anext(loop)).offset == 10

    run(test())


def test_a_lost_coordinator_connection_neither_loses_nor_repeats_records() -> None:
    async def test() -> None:
        async with world() as (servers, cluster), member(servers) as consumer:
            await produce(cluster, "t", numbers(100))
            consumer.subscribe("t")
            seen = []
            async for record in consumer:
                seen.append(record.value)
                if record.offset in (10, 50):
                    connector = consumer._running().connector
                    assert connector is not None and connector._connection is not None
                    await connector._connection.close()
                    await asyncio.sleep(0.01)
                if record.offset == 99:
                    break
            assert seen == numbers(100)

    run(test())


def test_what_a_callback_raises_is_raised_in_the_loop() -> None:
    async def test() -> None:
        async with world() as (servers, cluster), member(servers) as consumer:
            await produce(cluster, "t", numbers(3))

            async def refuse(partitions: set[TopicPartition]) -> None:
                raise LookupError("no room")

            consumer.subscribe("t", on_assign=refuse)
            with pytest.raises(LookupError, match="no room"):
                await take(consumer, 1)
            assert values(await take(consumer, 3)) == numbers(3)

    run(test())


def test_without_a_membership_offsets_are_committed_all_the_same() -> None:
    async def test() -> None:
        async with world() as (servers, cluster):
            await produce(cluster, "t", numbers(10))
            async with member(servers) as consumer:
                consumer.assign([T0])
                assert values(await take(consumer, 4)) == numbers(4)
            async with member(servers) as consumer:
                consumer.assign([T0])
                assert values(await take(consumer, 1)) == [b"4"]
                with pytest.raises(ClientError, match="assigned by hand"):
                    consumer.subscribe("t")

    run(test())


def test_closing_ends_though_the_broker_is_gone() -> None:
    async def test() -> None:
        async with Broker() as broker:
            async with Cluster(broker.bootstrap_servers) as cluster:
                await create_topic(cluster, "t")
                await produce(cluster, "t", numbers(3))
            consumer = member(broker.bootstrap_servers)
            await consumer.start()
            consumer.subscribe("t")
            assert values(await take(consumer, 3)) == numbers(3)
        began = asyncio.get_running_loop().time()
        await consumer.close(timeout_ms=600)
        assert asyncio.get_running_loop().time() - began < 10

    run(test())
