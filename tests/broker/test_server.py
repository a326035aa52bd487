from __future__ import annotations

import asyncio
import contextlib
import struct
import time

import pytest

from kohort.broker import server as server_module
from kohort.broker.server import Server
from kohort.broker.topics import ConfigResource
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.api_versions import ApiVersionsRequest
from kohort.protocol.messages.fetch import FetchRequest
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.list_offsets import ListOffsetsRequest
from kohort.protocol.messages.metadata import MetadataRequest
from kohort.protocol.messages.produce import ProduceRequest
from kohort.protocol.records.rows import encode_records
from tests.broker.conftest import Run
from tests.broker.raw import RawClient, frame
from tests.produce_requests import produce_request
from tests.waiting import until

VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def produce_values(topic: str, *values: bytes, acks: int = -1) -> ProduceRequest:
    return produce_request(topic, encode_records([(None, value) for value in values], 1_000), acks=acks)


def fetch(topic: str, offset: int = 0, max_wait_ms: int = 0, min_bytes: int = 1) -> FetchRequest:
    part = FetchRequest.Topic.Partition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 22,
        session_epoch=-1,
        topics=[FetchRequest.Topic(topic=topic, partitions=[part])],
    )


async def create(client: RawClient, topic: str) -> None:
    response = await client.call(
        MetadataRequest(topics=[MetadataRequest.Topic(name=topic)], allow_auto_topic_creation=True)
    )
    assert response.topics[0].error_code == 0


def test_pipelined_requests_are_answered_in_order(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        count = 1000
        client.writer.write(b"".join(frame(HEARTBEAT, 4, number) for number in range(count)))
        for number in range(count):
            correlation_id, response = await client.receive(12, 4)
            assert correlation_id == number
            assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        await client.close()

    with_server(test)


def test_requests_behind_a_long_poll_wait_for_it(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client, other = await RawClient.connect(server.port), await RawClient.connect(server.port)
        await create(client, "t")
        client.writer.write(frame(fetch("t", max_wait_ms=30_000), 12, 1) + frame(HEARTBEAT, 4, 2))
        assert (await other.call(produce_values("t", b"x"), 9)).responses[0].partition_responses[0].error_code == 0
        assert (await client.receive(1, 12))[0] == 1
        assert (await client.receive(12, 4))[0] == 2
        await client.close()
        await other.close()

    with_server(test)


def test_answers_that_nobody_reads_are_bounded(
    with_server: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Those who have not read theirs for longest lose their connection; others are served."""
    monkeypatch.setattr(server_module, "UNREAD_BYTES", 40_000_000)

    async def test(server: Server) -> None:
        server.broker.topics.create("t", 1)
        log = server.broker.topics.partition("t", 0).log  # type: ignore[union-attr]
        for _ in range(20):
            log.append(encode_records([(None, bytes(1_000_000))], 1_000), now=1_000)
        ask = fetch("t")
        ask.max_bytes = ask.topics[0].partitions[0].partition_max_bytes = 20_000_000
        clients = []
        for _ in range(4):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1000)
            writer.transport.pause_reading()
            writer.write(frame(ask, 12))
            clients.append(RawClient(reader, writer))
            await until(lambda: len(server._unread) >= min(len(clients), 2))
        await until(lambda: len(server._connections) == 2)
        assert server._unread.total <= 40_000_000
        other = await RawClient.connect(server.port)
        await other.call(HEARTBEAT, 4)
        for client in clients[2:]:
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            size = struct.unpack(">i", await client.reader.readexactly(4))[0]
            assert size > 19_000_000
            await client.reader.readexactly(size)
        await until(lambda: not len(server._unread))
        for client in (*clients, other):
            await client.close()

    with_server(test)
    assert caplog.text.count("doesn't read its answers") == 2


def test_a_request_in_single_bytes(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        for byte in frame(VERSIONS, 4, 5):
            client.writer.write(bytes([byte]))
            await client.writer.drain()
            await asyncio.sleep(0)
        assert (await client.receive(18, 4))[0] == 5
        await client.close()

    with_server(test)


@pytest.mark.parametrize(
    "junk",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">i", -1),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", 3) + b"abc",
        struct.pack(">i", 0),
        struct.pack(">ihhih", 10, 999, 0, 1, -1),
        struct.pack(">ihhih", 10, 12, 99, 1, -1),
        struct.pack(">ihhih", 10, 12, 4, 1, 30_000),
        struct.pack(">ihhih", 14, 12, 4, 1, -1) + b"\x05\x01\x02\x03",
        struct.pack(">ihhih", 12, 12, 0, 1, 2) + b"\xff\xff",
    ],
)  # fmt: skip
def test_junk_closes_its_connection_and_no_other(with_server: Run, junk: bytes) -> None:
    async def test(server: Server) -> None:
        good, bad = await RawClient.connect(server.port), await RawClient.connect(server.port)
        bad.writer.write(junk)
        assert await bad.closed()
        assert (await good.call(VERSIONS)).error_code == 0
        await good.close()
        await bad.close()

    with_server(test)


def test_a_client_that_does_not_read_is_not_read_from(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        other = await RawClient.connect(server.port)
        await create(client, "t")
        await client.call(produce_values("t", b"x" * 900_000), 9)
        requests = frame(fetch("t"), 12) * 1000
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]
        for _ in range(1000):
            client.writer.write(requests)
            try:
                await asyncio.wait_for(client.writer.drain(), 0.5)
            except TimeoutError:
                break
        else:
            pytest.fail("the server takes requests without end")
        assert (await other.call(VERSIONS)).error_code == 0
        client.reader._transport.resume_reading()  # type: ignore[attr-defined]
        for _ in range(3):
            await client.receive(1, 12)
        client.writer.transport.abort()
        await client.close()
        await other.close()

    with_server(test)


def test_two_thousand_connections(with_server: Run) -> None:
    async def test(server: Server) -> None:
        clients = [await RawClient.connect(server.port) for _ in range(2000)]
        for client in clients:
            client.writer.write(frame(HEARTBEAT, 4))
        for client in clients:
            await client.receive(12, 4)
        assert server.broker.metrics.connections == 2000
        for client in clients:
            await client.close()

    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit[0] < 5000:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(5000, limit[1]), limit[1]))
    with_server(test)


def test_idle_connections_are_closed_but_not_waiting_ones(with_server: Run) -> None:
    async def test(server: Server) -> None:
        idle, waiting = await RawClient.connect(server.port), await RawClient.connect(server.port)
        await create(waiting, "t")
        waiting.writer.write(frame(fetch("t", max_wait_ms=1500), 12))
        assert await idle.closed()
        await idle.close()
        assert (await waiting.receive(1, 12))[0] == 1
        await waiting.close()

    with_server(test, "connections.max.idle.ms=400")


def test_too_many_connections_are_refused(with_server: Run) -> None:
    async def test(server: Server) -> None:
        clients = [await RawClient.connect(server.port) for _ in range(2)]
        for client in clients:
            await client.call(VERSIONS)
        third = await RawClient.connect(server.port)
        assert await third.closed()
        await clients[0].close()
        fourth = None
        for _ in range(100):
            fourth = await RawClient.connect(server.port)
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await fourth.call(VERSIONS)
                break
            await fourth.close()
        assert fourth is not None
        await fourth.close()
        await clients[1].close()
        await third.close()

    with_server(test, "max.connections.per.ip=2")


@pytest.mark.parametrize("key", ["max.connections", "max.connections.per.ip"])
def test_limits_of_connections_can_be_changed_while_it_runs(with_server: Run, key: str) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        await client.call(VERSIONS)

        server.broker.topics.set_configs(ConfigResource.BROKER, "", {key: "1"})

        refused = await RawClient.connect(server.port)
        assert await refused.closed()
        await client.call(VERSIONS)
        for each in (client, refused):
            await each.close()

    with_server(test)


def test_stops_at_once_although_fetches_wait(with_server: Run) -> None:
    took = []

    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        await create(client, "t")
        client.writer.write(frame(fetch("t", max_wait_ms=60_000), 12))
        while not server.broker.fetches.delayed:
            await asyncio.sleep(0)
        began = time.monotonic()
        await server.stop()
        took.append(time.monotonic() - began)
        assert await client.closed()
        await client.close()

    with_server(test)
    assert took[0] < 30


def test_a_fetch_waits_for_enough_bytes_or_for_its_time(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client, other = await RawClient.connect(server.port), await RawClient.connect(server.port)
        await create(client, "t")
        began = time.monotonic()
        response = await client.call(fetch("t", max_wait_ms=100), 12)
        assert time.monotonic() - began >= 0.09
        assert not response.responses[0].partitions[0].records
        client.writer.write(frame(fetch("t", max_wait_ms=30_000, min_bytes=150), 12))
        for _ in range(2):  # a batch of one byte has 69
            await other.call(produce_values("t", b"x"), 9)
        assert server.broker.fetches.delayed == 1
        await other.call(produce_values("t", b"x"), 9)
        _, response = await client.receive(1, 12)
        assert len(response.responses[0].partitions[0].records) > 150
        await client.close()
        await other.close()

    with_server(test)


@pytest.mark.parametrize("durable", [False, True])
def test_what_is_acknowledged_can_be_read(with_server: Run, durable: bool) -> None:
    async def test(server: Server) -> None:
        clients = [await RawClient.connect(server.port) for _ in range(8)]
        await create(clients[0], "t")
        responses = await asyncio.gather(*(client.call(produce_values("t", b"a", b"b"), 9) for client in clients))
        offsets = sorted(response.responses[0].partition_responses[0].base_offset for response in responses)
        assert offsets == [2 * number for number in range(8)]
        part = ListOffsetsRequest.Topic.Partition(partition_index=0, timestamp=-1)
        request = ListOffsetsRequest(topics=[ListOffsetsRequest.Topic(name="t", partitions=[part])])
        assert (await clients[0].call(request, 5)).topics[0].partitions[0].offset == 16
        for client in clients:
            await client.close()

    with_server(test, durable=durable)


def test_without_acks_there_is_no_answer_and_an_error_closes(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        await create(client, "t")
        client.writer.write(frame(produce_values("t", b"x", acks=0), 9, 1) + frame(VERSIONS, 4, 2))
        assert (await client.receive(18, 4))[0] == 2
        client.writer.write(frame(produce_values("nowhere", b"x", acks=0), 9, 3))
        assert await client.closed()
        await client.close()

    with_server(test)
