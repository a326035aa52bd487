"""Share fetches that wait: what lets them go on, over connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kohort.broker.server import Server
from kohort.broker.topics import Topic
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.delete_topics import DeleteTopicsRequest
from kohort.protocol.records.rows import encode_records
from tests.broker.raw import RawClient, frame
from tests.broker.share.groups import GROUP, acquired, errors, initialized, share_acknowledge, share_fetch
from tests.produce_requests import produce_request

Run = Callable[..., None]
LONG_MS = 2**31 - 1
QUICK_LOCKS = ("group.share.min.record.lock.duration.ms=1000", "group.share.record.lock.duration.ms=1000")


async def shared(server: Server, *, partitions: int = 1, start_offset: int = 0) -> Topic:
    """A topic whose partitions a group shares."""
    topic = server.broker.topics.create("t", partitions)
    server.broker.share_state.start()
    replies = initialized(server.broker, topic, start_offset=start_offset)
    await until(lambda: all(reply.done for reply in replies))
    return topic


async def produce(server: Server, *values: bytes, topic: str = "t") -> None:
    client = await RawClient.connect(server.port)
    for value in values:
        response = await client.call(produce_request(topic, encode_records([(None, value)], 1_000)), 9)
        assert response.responses[0].partition_responses[0].error_code == 0
    await client.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


async def waiting(server: Server, client: RawClient, topic: Topic, epoch: int = 0, **fields: Any) -> None:
    """Lets a client's fetch wait."""
    before = server.broker.shares.fetches.delayed
    ask(client, topic, epoch, **fields)
    await until(lambda: server.broker.shares.fetches.delayed > before)


def ask(client: RawClient, topic: Topic, epoch: int = 0, **fields: Any) -> None:
    client.writer.write(frame(share_fetch(topic, epoch, max_wait_ms=LONG_MS, **fields), 2))


async def answer(client: RawClient) -> Any:
    return (await client.receive(78, 2))[1]


def test_data_arrives(with_server: Run) -> None:
    async def test(server: Server) -> None:
        topic = await shared(server)
        client = await RawClient.connect(server.port)
        await waiting(server, client, topic)
        await produce(server, b"v")
        assert acquired(await answer(client)) == [(0, 0, 1)]
        await waiting(server, client, topic, 1, min_bytes=1500)
        await produce(server, b"x" * 1000)
        assert server.broker.shares.fetches.delayed == 1
        await produce(server, b"x" * 1000)
        assert acquired(await answer(client)) == [(1, 2, 1)]
        await client.close()

    with_server(test)


def test_the_time_is_over(with_server: Run) -> None:
    async def test(server: Server) -> None:
        topic = await shared(server)
        client = await RawClient.connect(server.port)
        assert acquired(await client.call(share_fetch(topic, max_wait_ms=20))) == []
        assert errors(await client.call(share_fetch(topic, 1, max_wait_ms=20))) == []
        await client.close()

    with_server(test)


def test_who_asks_for_no_bytes_does_not_wait_for_any(with_server: Run) -> None:
    async def test(server: Server) -> None:
        topic = await shared(server)
        client = await RawClient.connect(server.port)
        assert acquired(await client.call(share_fetch(topic, min_bytes=0, max_wait_ms=LONG_MS))) == []
        await produce(server, b"v")
        assert acquired(await client.call(share_fetch(topic, 1, min_bytes=0, max_wait_ms=LONG_MS))) == [(0, 0, 1)]
        await client.close()

    with_server(test)


@pytest.mark.parametrize("how", ["release", "final epoch", "disconnect"])
def test_records_are_released(with_server: Run, how: str) -> None:
    async def test(server: Server) -> None:
        topic = await shared(server)
        await produce(server, b"1", b"2")
        first, second = await RawClient.connect(server.port), await RawClient.connect(server.port)
        assert acquired(await first.call(share_fetch(topic))) == [(0, 1, 1)]
        await waiting(server, second, topic, member="other")
        if how == "release":
            assert errors(await first.call(share_acknowledge(topic, 1, (0, 1, 2)))) == [(0, 0)]
        elif how == "final epoch":
            assert errors(await first.call(share_acknowledge(topic, -1))) == []
        else:
            first.writer.transport.abort()
        assert acquired(await answer(second)) == [(0, 1, 2)]
        assert (await second.call(share_acknowledge(topic, 1, (0, 1, 1), member="other"))).error_code == 0
        await first.close()
        await second.close()

    with_server(test)


def test_locks_expire(with_server: Run) -> None:
    async def test(server: Server) -> None:
        topic = await shared(server)
        await produce(server, b"1", b"2")
        first, second = await RawClient.connect(server.port), await RawClient.connect(server.port)
        assert acquired(await first.call(share_fetch(topic))) == [(0, 1, 1)]
        ask(second, topic, member="other")  # waits, unless the machine is so slow that the locks have ended by now
        assert acquired(await answer(second)) == [(0, 1, 2)]
        await first.close()
        await second.close()

    with_server(test, *QUICK_LOCKS)


def test_a_lock_that_is_renewed_does_not_expire(with_server: Run) -> None:
    async def test(server: Server) -> None:
        topic = await shared(server)
        await produce(server, b"1", b"2")
        client = await RawClient.connect(server.port)
        assert acquired(await client.call(share_fetch(topic))) == [(0, 1, 1)]
        (hosted,) = server.broker.shares
        assert hosted.machine is not None
        expected = hosted.machine.next_lock_deadline
        await asyncio.sleep(0.005)
        assert errors(await client.call(share_acknowledge(topic, 1, (0, 0, 4), is_renew_ack=True))) == [(0, 0)]
        first, second = hosted.machine.describe()
        assert second.locked_until == expected
        assert first.locked_until is not None and expected is not None
        assert first.locked_until > expected
        await client.close()

    with_server(test)


def test_a_connection_that_is_gone_gets_no_records(with_server: Run) -> None:
    async def test(server: Server) -> None:
        topic = await shared(server)
        shares = server.broker.shares
        client = await RawClient.connect(server.port)
        await waiting(server, client, topic)
        client.writer.transport.abort()
        await until(lambda: not shares.fetches.delayed and not len(shares.sessions))
        assert list(shares) == []  # nobody is left in the group
        await produce(server, b"v")
        other = await RawClient.connect(server.port)
        assert acquired(await other.call(share_fetch(topic, member="other"))) == [(0, 0, 1)]
        await other.close()
        await client.close()

    with_server(test)


def test_the_topic_goes(with_server: Run) -> None:
    async def test(server: Server) -> None:
        topic = await shared(server)
        client, admin = await RawClient.connect(server.port), await RawClient.connect(server.port)
        await waiting(server, client, topic)
        deleted = await admin.call(DeleteTopicsRequest(topics=[DeleteTopicsRequest.Topic(name="t")], timeout_ms=1000))
        assert deleted.responses[0].error_code == 0
        assert errors(await answer(client)) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
        assert errors(await client.call(share_fetch(topic, 1))) == [(ErrorCode.UNKNOWN_TOPIC_ID, 0)]
        assert list(server.broker.shares) == []
        await client.close()
        await admin.close()

    with_server(test)


def test_the_group_is_deleted_or_its_offsets_are_altered(with_server: Run) -> None:
    async def test(server: Server) -> None:
        topic = await shared(server)
        await produce(server, b"1", b"2")
        client = await RawClient.connect(server.port)
        assert acquired(await client.call(share_fetch(topic))) == [(0, 1, 1)]
        await waiting(server, client, topic, 1)
        initialized(server.broker, topic, start_offset=1, state_epoch=1)
        server.broker.shares.evict_partition(GROUP, (topic.id, 0))
        response = await answer(client)
        assert errors(response) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)]
        leader = response.responses[0].partitions[0].current_leader
        assert (leader.leader_id, leader.leader_epoch) == (server.broker.node_id, 0)
        assert [node.node_id for node in response.node_endpoints] == [server.broker.node_id]
        assert acquired(await client.call(share_fetch(topic, 2))) == [(1, 1, 1)]
        await client.close()

    with_server(test)


def test_a_state_of_a_later_epoch_fences(with_server: Run) -> None:
    async def test(server: Server) -> None:
        topic = await shared(server)
        await produce(server, b"1", b"2")
        client = await RawClient.connect(server.port)
        assert acquired(await client.call(share_fetch(topic))) == [(0, 1, 1)]
        initialized(server.broker, topic, start_offset=0, state_epoch=5)
        response = await client.call(share_acknowledge(topic, 1, (0, 1, 1)))
        assert errors(response) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)]
        assert acquired(await client.call(share_fetch(topic, 2))) == [(0, 1, 1)]  # loaded again
        await client.close()

    with_server(test)


def test_only_so_many_records_are_in_flight(with_server: Run) -> None:
    async def test(server: Server) -> None:
        topic = await shared(server)
        await produce(server, *[b"v"] * 120)
        client = await RawClient.connect(server.port)
        assert acquired(await client.call(share_fetch(topic))) == [(0, 99, 1)]
        await waiting(server, client, topic, 1)
        other = await RawClient.connect(server.port)
        assert acquired(await other.call(share_fetch(topic, member="other"))) == []
        await other.close()
        await client.close()

    with_server(test, "group.share.partition.max.record.locks=100")


def test_who_finds_no_room_waits_before_asking_again(with_server: Run) -> None:
    async def test(server: Server) -> None:
        topic = await shared(server)
        one, other = await RawClient.connect(server.port), await RawClient.connect(server.port)
        assert (await one.call(share_fetch(topic))).error_code == 0
        refused = await other.call(share_fetch(topic, member="other", max_wait_ms=20))
        assert refused.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        await waiting(server, other, topic, member="other")
        other.writer.transport.abort()
        await until(lambda: not server.broker.shares.fetches.delayed)
        await one.close()
        await other.close()

    with_server(test, "group.share.max.share.sessions=1")


@pytest.mark.parametrize("durable", [False, True])
def test_a_restart_knows_what_was_acknowledged(with_server: Run, durable: bool) -> None:
    async def first(server: Server) -> None:
        topic = await shared(server)
        await produce(server, *[b"v"] * 10)
        client = await RawClient.connect(server.port)
        assert acquired(await client.call(share_fetch(topic, max_records=6))) == [(0, 5, 1)]
        assert errors(await client.call(share_acknowledge(topic, 1, (0, 1, 1), (2, 2, 2), (3, 3, 1)))) == [(0, 0)]
        await client.close()

    async def second(server: Server) -> None:
        topic = server.broker.topics.get("t")
        assert topic is not None
        client = await RawClient.connect(server.port)
        response = await client.call(share_fetch(topic, max_wait_ms=5000))
        # 4 and 5 were released as the connection closed.
        assert acquired(response) == [(2, 2, 2), (4, 5, 2), (6, 9, 1)]
        await client.close()

    with_server(first, durable=durable)
    with_server(second, durable=durable)
