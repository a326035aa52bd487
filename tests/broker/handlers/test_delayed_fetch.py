"""Delayed fetches: what completes them, and how much memory they hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kohort.broker.broker import Broker
from kohort.broker.context import Context
from kohort.broker.handlers.fetch import _WatchedPartition, handle
from kohort.broker.server import Server
from kohort.broker.session import Session
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.delete_topics import DeleteTopicsRequest
from kohort.protocol.messages.fetch import FetchRequest, FetchResponse
from kohort.protocol.records.rows import encode_records
from tests.broker.handlers.conftest import append_records, done
from tests.broker.raw import RawClient, frame
from tests.produce_requests import produce_request

Run = Callable[..., None]
Answer = FetchResponse.TopicResponse.Partition

LONG_MS = 2**31 - 1


def fetch(*, min_bytes: int, max_bytes: int = 1 << 22, isolation_level: int = 0) -> FetchRequest:
    part = FetchRequest.Topic.Partition(partition=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=LONG_MS,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_epoch=-1,
        topics=[FetchRequest.Topic(topic="t", partitions=[part])],
    )


async def send_value(client: RawClient, value: bytes) -> None:
    request = produce_request("t", encode_records([(None, value)], 1_000))
    assert (await client.call(request, 9)).responses[0].partition_responses[0].error_code == 0


async def waiting(server: Server, request: FetchRequest) -> RawClient:
    """A client whose fetch waits."""
    client = await RawClient.connect(server.port)
    before = server.broker.fetches.delayed
    client.writer.write(frame(request, 12))
    async with asyncio.timeout(10):
        while server.broker.fetches.delayed == before:
            await asyncio.sleep(0)
    return client


async def answer(client: RawClient) -> Answer:
    _, response = await client.receive(1, 12)
    found = response.responses[0].partitions[0]
    assert isinstance(found, Answer)
    await client.close()
    return found


def test_a_connection_that_is_gone_waits_for_nothing(with_server: Run) -> None:
    async def test(server: Server) -> None:
        server.broker.topics.create("t", 1)
        client = await waiting(server, fetch(min_bytes=1))
        client.writer.transport.abort()
        (session,) = [connection.session for connection in server._connections]
        async with asyncio.timeout(10):
            while server.broker.fetches.delayed:
                await asyncio.sleep(0)
        assert session.gone
        await client.close()

    with_server(test)


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_records_are_counted_as_they_come(with_server: Run, isolation_level: int) -> None:
    async def test(server: Server) -> None:
        server.broker.topics.create("t", 1)
        producer = await RawClient.connect(server.port)
        await send_value(producer, b"x" * 1000)
        client = await waiting(server, fetch(min_bytes=2500, isolation_level=isolation_level))
        await send_value(producer, b"x" * 1000)
        assert server.broker.fetches.delayed == 1
        await send_value(producer, b"x" * 1000)
        assert len((await answer(client)).records or b"") > 3000
        await producer.close()

    with_server(test)


def test_what_was_read_is_not_held(with_server: Run) -> None:
    async def test(server: Server) -> None:
        log = server.broker.topics.create("t", 1).partitions[0].log
        producer = await RawClient.connect(server.port)
        await send_value(producer, b"x" * 500_000)
        client = await waiting(server, fetch(min_bytes=1_000_000))
        (operation,) = server.broker.fetches.cancel(log)
        assert not operation._fetch._results  # type: ignore[attr-defined]
        for each in (client, producer):
            await each.close()

    with_server(test)


def test_no_more_is_waited_for_than_there_is_room(with_server: Run) -> None:
    async def test(server: Server) -> None:
        server.broker.topics.create("t", 1)
        client = await RawClient.connect(server.port)
        await send_value(client, b"x" * 1000)
        response = await client.call(fetch(min_bytes=LONG_MS, max_bytes=500), 12)
        assert len(response.responses[0].partitions[0].records) > 1000
        await client.close()

    with_server(test)


def test_a_topic_that_is_deleted_ends_the_wait(with_server: Run) -> None:
    async def test(server: Server) -> None:
        server.broker.topics.create("t", 1)
        client, other = await waiting(server, fetch(min_bytes=1)), await RawClient.connect(server.port)
        await other.call(DeleteTopicsRequest(topic_names=("t",)), 5)
        assert (await answer(client)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await other.close()

    with_server(test)


@pytest.mark.parametrize(
    ("version", "code"), [(5, ErrorCode.NOT_LEADER_OR_FOLLOWER), (6, ErrorCode.KAFKA_STORAGE_ERROR)]
)
def test_an_offline_partition_is_not_waited_for(with_server: Run, version: int, code: ErrorCode) -> None:
    async def test(server: Server) -> None:
        server.broker.topics.create("t", 1).partitions[0].log.offline = "broken"
        client = await RawClient.connect(server.port)
        response = await client.call(fetch(min_bytes=1), version)
        assert response.responses[0].partitions[0].error_code == code
        await client.close()

    with_server(test)


def test_what_comes_between_reading_and_waiting_counts(broker: Broker) -> None:
    broker.topics.create("t", 1)
    session = Session()
    handling = handle(fetch(min_bytes=1), Context(broker, 12, broker.wheel.now, "", session))
    next(handling)  # it has read
    append_records(broker, "t", 0, 1)
    reply = done(handling)
    assert reply.done
    assert len(done(reply.value).responses[0].partitions[0].records) > 0


def test_a_client_that_goes_while_its_fetch_is_read_waits_for_nothing(broker: Broker) -> None:
    broker.topics.create("t", 1)
    session = Session()
    handling = handle(fetch(min_bytes=1), Context(broker, 12, broker.wheel.now, "", session))
    next(handling)  # it has read
    session.gone = True
    assert isinstance(done(handling), FetchResponse)
    assert not broker.fetches.delayed


def test_a_log_that_changes_is_looked_at_alone(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.topics.create("t", 20)
    request = fetch(min_bytes=1_000)
    part = FetchRequest.Topic.Partition
    request.topics[0].partitions = [part(partition=index, partition_max_bytes=1000) for index in range(20)]
    done(handle(request, Context(broker, 12, broker.wheel.now, "", Session())))
    looked_at: list[int] = []
    has_error = _WatchedPartition.has_error

    def look(watched: _WatchedPartition) -> bool:
        looked_at.append(watched.partition.index)
        return has_error(watched)

    monkeypatch.setattr(_WatchedPartition, "has_error", look)
    append_records(broker, "t", 7, 1)
    partition = broker.topics.partition("t", 7)
    assert partition is not None
    assert broker.fetches.check_and_complete(partition.log) == 0
    assert looked_at == [7]
