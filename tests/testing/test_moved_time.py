"""A test moves the clock of its broker: what takes minutes or days happens at once."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kohort.client import Admin, Consumer, Producer, ShareConsumer
from kohort.client.admin import ConfigResource, ResourceType
from kohort.client.types import TopicPartition
from kohort.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.protocol.messages.join_group import JoinGroupRequest
from kohort.testing import Broker

from ..broker.raw import RawClient
from ..waiting import run, until

MINUTE = timedelta(minutes=1)


async def with_broker(test: Any, settings: dict[str, object] | None = None) -> None:
    async with Broker(settings) as broker, Admin(broker.bootstrap_servers) as admin:
        await admin.topics.create("orders", partitions=1)
        await test(broker, admin)


def moved(test: Any, settings: dict[str, object] | None = None) -> None:
    run(with_broker(test, settings))


def advance(broker: Broker, by: timedelta) -> Coroutine[Any, Any, None]:
    return asyncio.to_thread(broker.advance, by)


def test_a_member_that_says_nothing_is_fenced() -> None:
    async def test(broker: Broker, admin: Admin) -> None:
        client = await RawClient.connect(broker.server.port)
        joining = ConsumerGroupHeartbeatRequest(
            group_id="billing", member_id=str(uuid.uuid4()), member_epoch=0, rebalance_timeout_ms=1000,
            subscribed_topic_names=("orders",), topic_partitions=[],
        )  # fmt: skip
        assert (await client.call(joining)).error_code == 0
        await advance(broker, timedelta(seconds=20))
        assert len((await admin.groups.describe("billing"))["billing"].members) == 1
        await advance(broker, timedelta(seconds=30))
        assert not (await admin.groups.describe("billing"))["billing"].members
        await client.close()

    moved(test)


def test_units_are_those_of_a_timedelta() -> None:
    with Broker() as broker:
        before = broker.now
        broker.advance(days=8, seconds=1)
        assert broker.now - before >= timedelta(days=8, seconds=1)
        with pytest.raises(TypeError, match="second"):
            broker.advance(second=46)


def test_a_number_is_no_time() -> None:
    with Broker() as broker, pytest.raises(TypeError, match=r"a timedelta, such as timedelta\(seconds=46\), not 46"):
        broker.advance(46)  # type: ignore[arg-type]


def test_a_delayed_join_is_not_waited_for() -> None:
    async def test(broker: Broker, admin: Admin) -> None:
        client = await RawClient.connect(broker.server.port)
        protocols = [JoinGroupRequest.Protocol(name="range", metadata=b"")]
        joining = JoinGroupRequest(
            group_id="billing", session_timeout_ms=30_000, rebalance_timeout_ms=600_000, protocol_type="consumer",
            protocols=protocols,
        )  # fmt: skip
        answer = asyncio.create_task(client.call(joining, 3))
        await until(admin.groups.list, "the member waits in its group")
        await advance(broker, 3 * MINUTE)
        assert not answer.done()
        await advance(broker, MINUTE)
        assert (await answer).generation_id == 1
        await client.close()

    moved(test, {"group.initial.rebalance.delay.ms": 240_000})


def test_what_is_older_than_its_retention_is_deleted() -> None:
    async def test(broker: Broker, admin: Admin) -> None:
        async with Producer(broker.bootstrap_servers) as producer:
            await (await producer.send("orders", b"two teapots", partition=0))
        place = TopicPartition("orders", 0)
        await advance(broker, timedelta(days=6))
        assert (await admin.offsets.ends([place]))[place] == (0, 1)
        await advance(broker, timedelta(days=1, hours=1))
        assert (await admin.offsets.ends([place]))[place] == (1, 1)

    moved(test)


def test_a_transaction_that_is_left_open_ends() -> None:
    async def test(broker: Broker, _: Admin) -> None:
        servers = broker.bootstrap_servers
        async with (
            Producer(servers, transactional_id="left", transaction_timeout_ms=60_000) as left,
            Producer(servers) as producer,
            Consumer(servers, isolation_level="read_committed", auto_offset_reset="earliest") as consumer,
        ):
            await left.begin_transaction()
            await (await left.send("orders", b"tea", partition=0))
            await (await producer.send("orders", b"cups", partition=0))
            consumer.assign([TopicPartition("orders", 0)])
            place = TopicPartition("orders", 0)

            async def stable() -> int:
                return (await consumer.end_offsets(place))[place]

            await advance(broker, timedelta(seconds=50))
            assert await stable() == 0
            await advance(broker, timedelta(seconds=20))
            assert await stable() == 3
            records = await consumer.poll(timeout_ms=30_000)
            assert [record.value for record in records] == [b"cups"]

    moved(test)


def test_locks_of_a_share_group_run_out() -> None:
    async def test(broker: Broker, admin: Admin) -> None:
        servers = broker.bootstrap_servers
        await admin.configs.alter(
            ConfigResource(ResourceType.GROUP, "billing"), set={"share.auto.offset.reset": "earliest"}
        )
        async with Producer(servers) as producer:
            await (await producer.send("orders", b"tea", partition=0))
        async with (
            ShareConsumer(servers, group_id="billing", lock_renewal_ms=0) as holder,
            ShareConsumer(servers, group_id="billing", lock_renewal_ms=0) as other,
        ):
            holder.subscribe("orders")
            held = await holder.poll(timeout_ms=30_000)
            assert [record.delivery_count for record in held] == [1]
            other.subscribe("orders")
            await until(other.assignment, "the other is a member, too")
            await advance(broker, timedelta(seconds=20))
            assert await other.poll(timeout_ms=100) == []
            await advance(broker, timedelta(seconds=11))
            again = await other.poll(timeout_ms=30_000)
            assert [(record.value, record.delivery_count) for record in again] == [(b"tea", 2)]

    moved(test)


def test_offsets_that_nobody_needs_expire() -> None:
    async def test(broker: Broker, admin: Admin) -> None:
        await admin.group_offsets.alter("billing", {TopicPartition("orders", 0): 0})
        await advance(broker, timedelta(days=6))
        assert [group.group_id for group in await admin.groups.list()] == ["billing"]
        await advance(broker, timedelta(days=1, hours=1))
        assert await admin.groups.list() == []

    moved(test)


def test_who_waits_for_a_broker_that_is_left_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        async def wait(_: object) -> None:
            begun.set()
            await go.wait()

        monkeypatch.setattr("kohort.broker.broker.Broker.catch_up", wait)
        async with Broker() as broker:
            waiting = asyncio.create_task(advance(broker, MINUTE))
            await begun.wait()
        try:
            with pytest.raises(RuntimeError, match="left while its clock was moved"):
                await asyncio.wait_for(waiting, 30)
        finally:
            go.set()

    run(main())


def test_the_clock_goes_on_and_is_told() -> None:
    with Broker() as broker:
        before = broker.now
        broker.advance(timedelta(days=1))
        assert timedelta(days=1) <= broker.now - before < timedelta(days=1, hours=1)
        assert isinstance(before, datetime)
        with pytest.raises(ValueError, match="doesn't go back"):
            broker.advance(-MINUTE)


def test_the_clock_stays_moved_when_the_broker_starts_again(tmp_path: Path) -> None:
    broker = Broker(data_dir=tmp_path)
    with broker:
        broker.advance(timedelta(days=1))
        before = broker.now
    with broker:
        assert broker.now >= before


def test_only_a_running_broker_has_time_to_move() -> None:
    with pytest.raises(RuntimeError, match="enter it with"):
        Broker().advance(MINUTE)


def test_its_own_loop_must_not_wait_for_it() -> None:
    async def test(broker: Broker, _: Admin) -> None:
        with pytest.raises(RuntimeError, match=r"asyncio\.to_thread\(broker\.advance"):
            broker.advance(MINUTE)

    moved(test)
