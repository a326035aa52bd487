"""Connections that break, stall and garble: nothing hangs, nothing acknowledged is lost, nothing is given twice."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from kohort.client import ClientConfig, Consumer, Producer, TopicPartition
from kohort.client.errors import NoBrokerError, NotDeliveredError

from ...faults.plans import Cut, Duplicate, Fault, Frame, Script, Seeded, Swallow, Truncate
from ...faults.proxy import FaultyProxy
from ...waiting import run
from ..servers import Server
from ..topics import read_partitions
from .records import numbered, take, write

pytestmark = pytest.mark.long

NewTopic = Callable[..., str]
NewName = Callable[[], str]


def impatient(bootstrap: str, **settings: Any) -> ClientConfig:
    """Settings of one who asks again soon."""
    return ClientConfig(
        bootstrap_servers=bootstrap,
        **{"request_timeout_ms": 1000, "reconnect_backoff_max_ms": 100, "retry_backoff_max_ms": 100} | settings,
    )


class Given:
    """What a consumer has given, checked as it comes: in a generation, each partition's offsets go up by one."""

    def __init__(self) -> None:
        self.values: dict[int, set[bytes]] = defaultdict(set)
        self.last: dict[tuple[object, int], int] = {}

    async def read(self, consumer: Consumer, count: int) -> None:
        """Read until there are so many different values."""
        async for record in consumer:
            member = consumer.group_metadata()
            place = (member.generation, member.member_id), record.partition
            last = self.last.get(place)
            assert last is None or record.offset == last + 1, f"{record.offset} after {last} in {place}"
            self.last[place] = record.offset
            self.values[record.partition].add(record.value)
            if sum(map(len, self.values.values())) == count:
                return


CLASSIC = {"session_timeout_ms": 3000, "heartbeat_interval_ms": 200, "max_poll_interval_ms": 5000}
"""The last, and 5 s more, is how long a join is waited for that was swallowed: others may take so long to join."""


@pytest.mark.parametrize(
    ("broker", "seed", "membership"),
    [
        pytest.param("kohort", 4, CLASSIC | {"partition_assignment_strategy": ("range",)}, id="kohort-range"),
        pytest.param(
            "kohort", 8, CLASSIC | {"partition_assignment_strategy": ("cooperative-sticky",)}, id="kohort-coop"
        ),
        pytest.param("kafka", 8, CLASSIC | {"partition_assignment_strategy": ("range",)}, id="kafka-range"),
        pytest.param("kohort", 115, {"group_protocol": "consumer"}, id="kohort-consumer"),
        pytest.param("kafka", 115, {"group_protocol": "consumer"}, id="kafka-consumer"),
    ],
    indirect=["broker"],
)
def test_anything_at_random(
    seed: int, membership: dict[str, Any], broker: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, group, count = new_topic(4), new_name(), 3000
    given = Given()

    def lost(_: set[TopicPartition]) -> None:
        # Its session may end while nothing gets through; and a consumer group knows a member by its last two epochs:
        # when the answers that told of two are lost, it's fenced. Both protocols let it in again as one that has
        # nothing, perhaps with its old id: for what it is given from now on it is another member.
        given.last.clear()

    async def send_all(proxy: FaultyProxy) -> None:
        async with Producer(impatient(proxy.bootstrap), batch_size=500, linger_ms=1) as producer:
            deliveries = []
            for n in range(count):
                deliveries.append(await producer.send(topic, b"%d" % (n // 4), partition=n % 4))
                if n % 100 == 99:
                    await asyncio.sleep(0.01)
            for n, delivery in enumerate(deliveries):
                assert (await delivery).offset == n // 4

    async def consume(proxy: FaultyProxy) -> None:
        async with Consumer(
            impatient(proxy.bootstrap),
            group_id=group,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=50,
            fetch_max_wait_ms=50,
            max_partition_fetch_bytes=2000,
            **membership,
        ) as consumer:
            consumer.subscribe(topic, on_lost=lost)
            await given.read(consumer, count)

    async def scenario() -> None:
        plans = (Seeded(100 * seed + each, rate=0.25, most=40, delay=0.1, swallow=each == 0) for each in range(2))
        async with (
            FaultyProxy(broker.bootstrap, next(plans)) as for_consumer,
            FaultyProxy(broker.bootstrap, next(plans)) as for_producer,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(consume(for_consumer))
            group.create_task(send_all(for_producer))
        assert for_consumer.done.total() > 15 and for_producer.done.total() > 15

    run(scenario())
    assert read_partitions(broker.bootstrap, topic, 4) == numbered(4, count // 4)
    assert given.values == {partition: set(values) for partition, values in numbered(4, count // 4).items()}


APIS = [
    "ApiVersions", "Metadata", "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "OffsetFetch", "Fetch",
    "ListOffsets", "OffsetCommit", "LeaveGroup", "InitProducerId", "Produce", "EndTxn", "TxnOffsetCommit",
]  # fmt: skip


@pytest.mark.parametrize(
    ("broker", "protocol", "api"),
    [
        *(("kohort", "classic", api) for api in APIS),
        ("kohort", "consumer", "ConsumerGroupHeartbeat"),
        ("kafka", "consumer", "ConsumerGroupHeartbeat"),
    ],
    indirect=["broker"],
)
def test_every_answer_may_be_garbled(
    protocol: str, api: str, broker: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    """Each is cut, truncated and sent twice; and the request is cut, too. Nobody loses its place for that."""
    source, target, group = new_topic(2), new_topic(2), new_name()
    quick = {"heartbeat_interval_ms": 50, "session_timeout_ms": 10_000} if protocol == "classic" else {}
    lost: list[object] = []
    write(broker.bootstrap, source, numbered(2, 20))

    async def life(proxy: FaultyProxy) -> None:
        config = impatient(proxy.bootstrap, request_timeout_ms=5000)
        async with (
            Producer(config, transactional_id=group) as producer,
            Consumer(
                config,
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                group_protocol=protocol,
                fetch_max_wait_ms=20,
                **quick,
            ) as consumer,
        ):
            consumer.subscribe(source, on_lost=lost.append)
            done = 0
            while done < 40:
                if not (records := await consumer.poll(max_records=5, timeout_ms=1000)):
                    continue
                async with producer.transaction():
                    for record in records:
                        await producer.send(target, record.value, partition=record.partition)
                    if done >= 20:
                        offsets = {TopicPartition(r.topic, r.partition): r.offset + 1 for r in records}
                        await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
                if done < 20:
                    await consumer.commit()
                done += len(records)
            while api.endswith("Heartbeat") and not all(
                proxy.done[kind, api] for kind in ("Cut", "Truncate", "Duplicate")
            ):
                await consumer.poll(timeout_ms=20)

    async def scenario() -> None:
        answers = Script(api, "response", Cut(9), Truncate(5), Duplicate())
        requests = Script(api, "request", None, None, None, Cut(11))

        def plan(frame: Frame) -> Fault | None:
            return answers(frame) or requests(frame)

        async with FaultyProxy(broker.bootstrap, plan) as proxy:
            await life(proxy)
            assert proxy.done and not lost

    run(scenario(), timeout_s=40)
    found = read_partitions(broker.bootstrap, target, 2)
    assert {partition: sorted(set(values), key=lambda v: int(v or b"")) for partition, values in found.items()} == (
        numbered(2, 20)
    )


def test_silence_and_refusal_for_a_while(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic, group = new_topic(2), new_name()
    given = Given()

    async def scenario() -> None:
        async with FaultyProxy(broker.bootstrap) as proxy:
            config = impatient(proxy.bootstrap, request_timeout_ms=700)
            async with (
                Producer(config, linger_ms=1) as producer,
                Consumer(
                    config,
                    group_id=group,
                    auto_offset_reset="earliest",
                    session_timeout_ms=1000,
                    heartbeat_interval_ms=100,
                    fetch_max_wait_ms=50,
                ) as consumer,
            ):
                consumer.subscribe(topic)
                sent = 0

                async def send_and_read() -> None:
                    nonlocal sent
                    for n in range(sent, sent + 20):
                        await producer.send(topic, b"%d" % (n // 2), partition=n % 2)
                    sent += 20
                    await given.read(consumer, sent)

                await send_and_read()
                for trouble in (proxy.stalled, proxy.refusing):
                    async with trouble():
                        during = asyncio.create_task(send_and_read())
                        await asyncio.wait([during], timeout=1.3)  # longer than the session
                        assert not during.done()
                    await during
                await proxy.cut()
                await send_and_read()

    run(scenario())
    assert read_partitions(broker.bootstrap, topic, 2) == numbered(2, 40)


def test_closing_ends_when_the_broker_is_silent(broker: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic = new_topic()
    write(broker.bootstrap, topic, {0: [b"first"]})

    async def scenario() -> None:
        async with FaultyProxy(broker.bootstrap) as proxy:
            producer = Producer(impatient(proxy.bootstrap, request_timeout_ms=30_000))
            consumer = Consumer(
                impatient(proxy.bootstrap, request_timeout_ms=30_000), group_id=new_name(), auto_offset_reset="earliest"
            )
            await producer.start()
            await consumer.start()
            consumer.subscribe(topic)
            await take(consumer, 1)
            await (await producer.send(topic, b"second"))
            async with proxy.stalled():
                delivery = await producer.send(topic, b"third")
                started = time.monotonic()
                with pytest.raises(NotDeliveredError, match="1 "):
                    await producer.close(timeout_ms=500)
                await consumer.close(timeout_ms=500)
                assert time.monotonic() - started < 25
                assert delivery.done()

    run(scenario())


def test_the_first_servers_of_the_list_may_be_down(broker: Server) -> None:
    async def scenario() -> None:
        async with FaultyProxy(broker.bootstrap) as first, FaultyProxy(broker.bootstrap) as second:
            silent = Script("ApiVersions", "response", *[Swallow()] * 100)
            second.plan = silent
            config = impatient(
                f"{first.bootstrap},{second.bootstrap},{broker.bootstrap}", socket_connection_setup_timeout_ms=300
            )
            async with first.refusing(), Consumer(config) as consumer:
                assert await consumer.topics() is not None
        nobody = impatient(first.bootstrap, bootstrap_timeout_ms=500)
        with pytest.raises(NoBrokerError):
            async with Consumer(nobody):
                pass

    run(scenario(), timeout_s=20)
