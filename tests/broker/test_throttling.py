"""Quotas of clients are held: who does too much waits, and nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.client_quotas import ClientQuotas, QuotaChange
from kohort.broker.config import Settings
from kohort.broker.server import Server
from kohort.broker.session import Session
from kohort.broker.throttling import Throttling
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages import api, apis
from kohort.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from kohort.protocol.messages.api_versions import ApiVersionsRequest
from kohort.protocol.messages.create_partitions import CreatePartitionsRequest
from kohort.protocol.messages.create_topics import CreateTopicsRequest
from kohort.protocol.messages.delete_topics import DeleteTopicsRequest
from kohort.protocol.messages.fetch import FetchRequest
from kohort.protocol.messages.heartbeat import HeartbeatResponse
from kohort.protocol.messages.metadata import MetadataRequest
from kohort.protocol.messages.produce import ProduceResponse
from kohort.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tests.broker.certificates import write_stores
from tests.broker.conftest import Run
from tests.broker.raw import RawClient, frame
from tests.broker.test_server import HEARTBEAT, create, fetch, produce_values
from tests.waiting import until

Entry = AlterClientQuotasRequest.Entry
KEYS = {name: api(key) for key, name in ((0, "Produce"), (1, "Fetch"), (12, "Heartbeat"), (17, "SaslHandshake"))}
ALICE = {"user": "alice"}
EVERY_CLIENT: dict[str, str | None] = {"client-id": None}


class World:
    """Throttling with a clock of its own, and the quotas it reads."""

    def __init__(self, **settings: object) -> None:
        self.now = 0
        self.quotas = ClientQuotas(lambda records: None)
        self.throttling = Throttling(self.quotas, Settings.of(settings), lambda: self.now)

    def set(self, entity: dict[str, Any], **values: float | None) -> None:
        results = self.quotas.alter([QuotaChange(frozenset(entity.items()), list(values.items()))])
        assert [code for code, _ in results.values()] == [ErrorCode.NONE]

    def charge(
        self, name: str, session: Session, response: Any, *, client_id: str = "app", size: int = 0, seconds: float = 0.0
    ) -> int:
        """Charge a request; how long its client has to wait."""
        session.throttle_ms = 0
        assert self.throttling.active
        self.answer = self.throttling.charge(KEYS[name].key, session, client_id, response, size, seconds)
        return session.throttle_ms


def alice() -> Session:
    return Session(principal="User:alice")


def test_without_quotas_nothing_is_counted() -> None:
    world = World()
    assert not world.throttling.active
    world.set({"ip": None}, connection_creation_rate=1)
    assert not world.throttling.active  # for requests
    world.set(ALICE, producer_byte_rate=1)
    assert world.throttling.active
    world.set(ALICE, producer_byte_rate=None)
    assert not world.throttling.active


def test_a_producer_waits_until_its_rate_is_there_again() -> None:
    world = World()
    world.set(ALICE, producer_byte_rate=1000)
    session, response = alice(), ProduceResponse()
    assert world.charge("Produce", session, response, size=10_000) == 0
    assert world.charge("Produce", session, response, size=10_000) == 10_000
    assert (world.answer.throttle_time_ms, response.throttle_time_ms) == (10_000, 0)  # a coordinator may keep it
    assert world.charge("Produce", Session(), ProduceResponse(), size=10_000) == 0  # somebody else
    assert world.throttling.throttled == {"producer_byte_rate": 1}
    assert world.throttling.throttled_ms == {"producer_byte_rate": 10_000}
    world.now = 11_000
    assert world.charge("Produce", session, response, size=10_000) == 0
    world.set(ALICE, producer_byte_rate=1)
    assert world.charge("Produce", session, None, size=1) > 0  # also with acks=0


def test_time_of_work_counts_up_to_a_second() -> None:
    world = World()
    world.set(EVERY_CLIENT, request_percentage=50)
    session, response = Session(), HeartbeatResponse()
    assert world.charge("Heartbeat", session, response, seconds=5.0) == 0
    assert world.charge("Heartbeat", session, response, seconds=0.1) == 200
    assert world.answer.throttle_time_ms == 200
    assert world.charge("Heartbeat", session, response, seconds=100.0) == 1000
    assert world.charge("Heartbeat", session, response, client_id="other", seconds=5.0) == 0
    assert world.charge("Produce", session, None, seconds=5.0) == 0  # nothing is answered: acks=0
    assert world.charge("SaslHandshake", session, SaslHandshakeResponse(), seconds=50.0) == 0


def test_the_longest_wait_counts() -> None:
    world = World()
    world.set(ALICE, request_percentage=1, producer_byte_rate=1000)
    assert world.charge("Produce", alice(), ProduceResponse(), size=10_200, seconds=50.0) == 1000
    assert world.throttling.throttled == {"request_percentage": 1}
    assert world.charge("Produce", alice(), ProduceResponse(), size=10_000, seconds=0.0) == 10_200
    assert world.throttling.throttled == {"request_percentage": 1, "producer_byte_rate": 1}


def test_a_fetch_over_its_quota_is_not_sent_nor_counted() -> None:
    world = World()
    world.set(ALICE, consumer_byte_rate=100)
    session = alice()
    assert world.throttling.fetch_bytes(session, "app") == 1000
    assert world.throttling.fetch_bytes(Session(), "app") is None
    assert not world.throttling.fetch(session, "app", 900)
    assert world.throttling.fetch(session, "app", 300)
    assert session.throttle_ms == 2000
    assert not world.throttling.fetch(session, "app", 100)
    assert not world.throttling.fetch(Session(), "app", 5000)


def test_a_batch_larger_than_a_window_is_sent_when_nothing_else_was() -> None:
    world = World()
    world.set(ALICE, consumer_byte_rate=100)
    session = alice()
    assert not world.throttling.fetch(session, "app", 5000)
    assert session.throttle_ms == 40_000
    assert world.throttling.fetch(session, "app", 5000)


def test_created_partitions_are_refused_or_waited_for() -> None:
    world = World(**{"controller.quota.window.num": 10})
    world.set(ALICE, controller_mutation_rate=1)
    session = alice()
    world.throttling.mutate(session, "app", 15, strict=True)  # who has anything left may go over
    assert session.throttle_ms == 0
    with pytest.raises(KafkaError) as refused:
        world.throttling.mutate(session, "app", 1, strict=True)
    assert refused.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert session.throttle_ms == 5000
    world.now = 5000
    session.throttle_ms = 0
    world.throttling.mutate(session, "app", 1, strict=False)
    assert session.throttle_ms == 1000
    world.throttling.mutate(Session(), "app", 100, strict=True)
    world.set(ALICE, controller_mutation_rate=10)
    world.throttling.mutate(session, "app", 1, strict=False)
    assert session.throttle_ms == 1000  # 2 are owed: 200 ms, less than before


def test_connections_of_an_address() -> None:
    world = World()
    world.set({"ip": None}, connection_creation_rate=1)
    world.set({"ip": "::1"}, connection_creation_rate=2)
    assert [world.throttling.connect("10.0.0.1") for _ in range(12)] == [0] * 10 + [1000] * 2
    assert world.throttling.connect("::ffff:10.0.0.1") == 1000
    assert [world.throttling.connect("0:0:0:0:0:0:0:1") for _ in range(21)] == [0] * 20 + [500]
    assert world.throttling.connect("fe80::1%eth0") == world.throttling.connect("") == 0
    world.now = 11_001
    assert world.throttling.connect("10.0.0.1") == 0  # refused ones didn't count
    assert world.throttling.throttled["connection_creation_rate"] == 4


@contextlib.asynccontextmanager
async def clients(server: Server, count: int) -> AsyncIterator[list[RawClient]]:
    """Connections, closed in the end."""
    async with contextlib.AsyncExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(await RawClient.connect(server.port))
            stack.push_async_callback(made[-1].close)
        yield made


async def set_quota(client: RawClient, entity: dict[str, Any], **values: float) -> None:
    entry = Entry(
        entity=[Entry.Entity(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[Entry.Op(key=key, value=value) for key, value in values.items()],
    )
    response = await client.call(AlterClientQuotasRequest(entries=[entry]), client_id="")
    assert response.entries[0].error_code == 0


def test_a_connection_is_muted_and_others_are_not(with_server: Run) -> None:
    async def test(server: Server) -> None:
        async with clients(server, 3) as (admin, fast, other):
            await create(admin, "t")
            await set_quota(admin, {"client-id": "fast"}, producer_byte_rate=10)
            answer = await fast.call(produce_values("t", b"x" * 5000), 9, client_id="fast")
            assert answer.throttle_time_ms > 400_000
            assert answer.responses[0].partition_responses[0].error_code == 0
            fast.writer.write(frame(HEARTBEAT, 4, 7, "fast") * 3)
            for _ in range(20):
                answer = await other.call(produce_values("t", b"x" * 5000), 9, client_id="other")
                assert answer.throttle_time_ms == 0
            muted = [each for each in server._connections if each._muted]
            assert len(muted) == 1
            assert fast.reader._buffer == b""  # type: ignore[attr-defined]
            await fast.close()
            assert server.broker.throttling.throttled == {"producer_byte_rate": 1}
            # The server stops at once, with a connection that is muted for minutes.

    began = time.monotonic()
    with_server(test)
    assert time.monotonic() - began < 100


def test_a_muted_connection_goes_on_when_its_time_is_over(with_server: Run) -> None:
    async def test(server: Server) -> None:
        async with clients(server, 2) as (admin, fast):
            await create(admin, "t")
            size = len(frame(produce_values("t", b"x" * 5000), 9, 1, "fast")) - 4
            await set_quota(admin, {"client-id": "fast"}, producer_byte_rate=size // 10 - 5)
            began = time.monotonic()
            fast.writer.write(
                frame(produce_values("t", b"x" * 5000), 9, 1, "fast") + frame(HEARTBEAT, 4, 2, "fast") * 3
            )
            _, answer = await fast.receive(0, 9)
            assert 50 < answer.throttle_time_ms < 200
            for _ in range(3):
                _, heartbeat = await fast.receive(12, 4)
                assert heartbeat.throttle_time_ms == 0
            assert time.monotonic() - began >= answer.throttle_time_ms / 1000 - 0.01
            fast.writer.write(frame(HEARTBEAT, 4, 3, "fast"))
            assert (await fast.receive(12, 4))[0] == 3

    with_server(test)


def test_produce_without_answers_is_held_too(with_server: Run) -> None:
    async def test(server: Server) -> None:
        async with clients(server, 2) as (admin, fast):
            await create(admin, "t")
            await set_quota(admin, {"client-id": "fast"}, producer_byte_rate=10)
            fast.writer.write(frame(produce_values("t", b"x" * 5000, acks=0), 9, 1, "fast"))
            await until(lambda: any(each._muted for each in server._connections))

    with_server(test)


def test_a_fetch_over_its_quota_is_empty(with_server: Run) -> None:
    async def test(server: Server) -> None:
        async with clients(server, 3) as (admin, reader, another):
            await create(admin, "t")
            for _ in range(3):
                await admin.call(produce_values("t", b"x" * 4000), 9, client_id="")
            await set_quota(admin, {"client-id": "reader"}, consumer_byte_rate=410)
            answer = await reader.call(fetch("t"), 12, client_id="reader")
            # At most what may come in a window: one batch here.
            assert 4000 < len(answer.responses[0].partitions[0].records) < 4200
            assert answer.throttle_time_ms == 0
            answer = await reader.call(fetch("t"), 12, client_id="reader")
            assert answer.responses == []
            assert 5_000 < answer.throttle_time_ms < 11_000
            begin = FetchRequest(max_bytes=1 << 20, topics=fetch("t").topics)
            answer = await another.call(begin, 12, client_id="reader")
            assert (answer.session_id, answer.responses, len(server.broker.fetch_sessions)) == (0, [], 0)

    with_server(test)


def test_topics_over_the_quota_are_refused(with_server: Run) -> None:
    async def test(server: Server) -> None:
        async with clients(server, 6) as (admin, eager, old, *again):

            def topic(name: str) -> CreateTopicsRequest:
                return CreateTopicsRequest(
                    topics=[CreateTopicsRequest.Topic(name=name, num_partitions=30, replication_factor=1)],
                    timeout_ms=1000,
                )

            await set_quota(admin, {"client-id": "eager"}, controller_mutation_rate=0.1)
            assert (await eager.call(topic("a"), client_id="eager")).topics[0].error_code == 0
            answer = await eager.call(topic("b"), client_id="eager")
            assert answer.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            assert answer.throttle_time_ms > 200_000
            for request in (
                CreatePartitionsRequest(topics=[CreatePartitionsRequest.Topic(name="a", count=40, assignments=None)]),
                DeleteTopicsRequest(topics=[DeleteTopicsRequest.Topic(name="a")]),
            ):
                answer = await again.pop().call(request, client_id="eager")
                (result,) = answer.results if isinstance(request, CreatePartitionsRequest) else answer.responses
                assert result.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
                assert answer.throttle_time_ms > 200_000
            answer = await again.pop().call(
                MetadataRequest(topics=[MetadataRequest.Topic(name="auto")], allow_auto_topic_creation=True),
                client_id="eager",
            )
            assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            # Clients from before the error wait afterwards.
            answer = await old.call(topic("b"), 5, client_id="eager")
            assert answer.topics[0].error_code == 0
            assert answer.throttle_time_ms > 400_000
            assert server.broker.throttling.throttled["controller_mutation_rate"] == 5

    with_server(test)


@pytest.mark.parametrize("secured", [False, True])
def test_connections_over_the_rate_are_held_and_closed(with_server: Run, tmp_path: Path, secured: bool) -> None:
    async def test(server: Server) -> None:
        async with clients(server, 1) as (admin,):
            await set_quota(admin, {"ip": "127.0.0.1"}, connection_creation_rate=1)
        port = server.listeners[1].port if secured else server.port
        began = time.monotonic()
        many = [await asyncio.open_connection("127.0.0.1", port) for _ in range(11)]
        await until(lambda: server.broker.throttling.throttled["connection_creation_rate"] == 1)
        refused = many[-1]
        refused[1].write(frame(ApiVersionsRequest(), 3))
        with contextlib.suppress(ConnectionResetError):  # as what it has sent is not read
            assert await asyncio.wait_for(refused[0].read(), 10) == b""
        assert time.monotonic() - began > 0.8
        for _, writer in many:
            writer.close()
        await until(lambda: server.broker.metrics.connections == 0)

    settings = ["listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"] if secured else []
    if secured:
        (tmp_path / "stores").mkdir()
        keystore, _ = write_stores(tmp_path / "stores")
        settings += [f"ssl.keystore.location={keystore}"]
    with_server(test, *settings)


def test_every_answer_with_the_field_can_say_how_long() -> None:
    """Older versions don't have it, and are encoded without."""
    with_field = [which for which in apis() if "throttle_time_ms" in which.response.__struct_fields__]
    assert len(with_field) > 50
    for which in with_field:
        for version in which.versions:
            which.response(throttle_time_ms=5).encode(version)  # type: ignore[call-arg]
