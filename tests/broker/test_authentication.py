"""Connections that have to say who they are: nothing else is answered before, nor after a wrong word."""

from __future__ import annotations

import struct

import pytest

from kohort.broker import newcomers
from kohort.broker.scram_users import UserChange
from kohort.broker.server import Server
from kohort.client.sasl import scram
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request
from kohort.protocol.messages.api_versions import ApiVersionsRequest
from kohort.protocol.messages.metadata import MetadataRequest
from kohort.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kohort.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kohort.security.sasl.scram import ScramMechanism, credential, salted_password
from tests.broker.conftest import Run
from tests.broker.mutated_exchanges import fuzz
from tests.broker.raw import RawClient, frame
from tests.waiting import until

ALICE = b"\0alice\0secret"
SHA_256 = ScramMechanism.SHA_256
CREDENTIAL = credential(SHA_256, salted_password(SHA_256, "secret", b"salt", 4096), b"salt", 4096)
METADATA = MetadataRequest(topics=[])
VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1")


SASL = (
    "listeners=SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config="
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";',
    "connection.failed.authentication.delay.ms=10",
)


async def shake(client: RawClient, mechanism: str = "PLAIN", version: int = 1) -> int:
    return int((await client.call(SaslHandshakeRequest(mechanism=mechanism), version)).error_code)


async def log_in(client: RawClient) -> None:
    assert await shake(client) == 0
    assert (await client.call(SaslAuthenticateRequest(auth_bytes=ALICE))).error_code == 0


def test_who_is_known_is_served(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        assert (await client.call(VERSIONS, 3)).error_code == 0
        await log_in(client)
        assert (await client.call(METADATA)).controller_id == 1
        (connection,) = server._connections
        assert connection.session.principal == "User:alice"
        await client.close()

    with_server(test, *SASL)


def test_scram_by_our_client(with_server: Run) -> None:
    async def test(server: Server) -> None:
        server.broker.scram_users.alter([UserChange("alice", SHA_256.number, CREDENTIAL)])
        client = await RawClient.connect(server.port)
        exchange = scram(SHA_256.value, "alice", "secret")
        assert await shake(client, SHA_256.value) == 0
        token = next(exchange)
        with pytest.raises(StopIteration):
            while True:
                token = exchange.send((await client.call(SaslAuthenticateRequest(auth_bytes=token))).auth_bytes)
        assert (await client.call(METADATA)).controller_id == 1
        await client.close()

    with_server(test, *SASL)


def test_tokens_without_headers(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        assert await shake(client, version=0) == 0
        client.writer.write(struct.pack(">i", len(ALICE)) + ALICE)
        assert await client.receive_bytes() == b""
        assert (await client.call(METADATA)).controller_id == 1
        await client.close()

    with_server(test, *SASL)


@pytest.mark.parametrize("request_", [METADATA, SaslAuthenticateRequest(auth_bytes=ALICE)], ids=["metadata", "token"])
def test_nothing_else_is_answered_before(request_: Request, with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        client.writer.write(frame(request_, request_.__message__.versions[-1]))
        if request_ is METADATA:
            assert await client.closed()
        else:
            assert (await client.receive(36, 2))[1].error_code == ErrorCode.ILLEGAL_SASL_STATE
            assert await client.closed()
        await client.close()

    with_server(test, *SASL)


@pytest.mark.parametrize("raw", [False, True])
def test_a_wrong_password_ends_the_connection(raw: bool, with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        assert await shake(client, version=0 if raw else 1) == 0
        wrong = b"\0alice\0wrong"
        if raw:
            client.writer.write(struct.pack(">i", len(wrong)) + wrong)
        else:
            response = await client.call(SaslAuthenticateRequest(auth_bytes=wrong))
            assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert "Invalid username or password" in response.error_message
        client.writer.write(frame(METADATA, 12))
        assert await client.closed()
        await client.close()

    with_server(test, *SASL)


def test_a_mechanism_that_is_not_enabled(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        response = await client.call(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
        assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert list(response.mechanisms) == ["PLAIN", "SCRAM-SHA-256"]
        assert await client.closed()
        await client.close()

    with_server(test, *SASL)


def test_a_session_that_has_ended_can_only_be_renewed(with_server: Run) -> None:
    async def test(server: Server) -> None:
        now = server.now()
        server.now = lambda: now
        late, renewed = await RawClient.connect(server.port), await RawClient.connect(server.port)
        for client in (late, renewed):
            await shake(client)
            response = await client.call(SaslAuthenticateRequest(auth_bytes=ALICE))
            assert response.session_lifetime_ms == 500
        now += 500
        await log_in(renewed)
        assert (await renewed.call(METADATA)).controller_id == 1
        late.writer.write(frame(METADATA, 12))
        assert await late.closed()
        for client in (late, renewed):
            await client.close()

    with_server(test, *SASL, "plain.connections.max.reauth.ms=500")


def test_requests_before_are_small(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        client.writer.write(struct.pack(">i", 524_289) + bytes(100))
        assert await client.closed()
        await client.close()

    with_server(test, *SASL)


@pytest.mark.parametrize(("most", "taken"), [(0, False), (-1, True)])
def test_a_bound_of_0_and_none(most: int, taken: bool, with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        if taken:
            await log_in(client)
        else:
            client.writer.write(frame(VERSIONS, 3))
            assert await client.closed()
        await client.close()

    with_server(test, *SASL, f"sasl.server.max.receive.size={most}")


def test_a_header_with_very_many_tagged_fields_is_refused(with_server: Run) -> None:
    """They are passed over in one go, which would take long."""

    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        fields = 200_000
        body = struct.pack(">hhihb", 18, 3, 1, -1, -64) + b"\x9a\x0c" + b"\1\0" * fields
        client.writer.write(struct.pack(">i", len(body)) + body)
        assert await client.closed()
        await client.close()

    with_server(test, *SASL)


def test_who_does_not_say_who_it_is_has_to_go(with_server: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newcomers, "SECONDS", 0.2)

    async def test(server: Server) -> None:
        known = await RawClient.connect(server.port)
        await log_in(known)
        talkative = await RawClient.connect(server.port)
        with pytest.raises((EOFError, ConnectionError)):
            while True:  # which would keep it from being idle
                await talkative.call(VERSIONS, 3)
        assert (await known.call(METADATA)).controller_id == 1
        for client in (known, talkative):
            await client.close()

    with_server(test, *SASL)


def test_memory_of_strangers_is_not_that_of_clients(with_server: Run) -> None:
    """Clients would wait while strangers leave requests unfinished, be it byte by byte."""

    async def test(server: Server) -> None:
        known = await RawClient.connect(server.port)
        await log_in(known)
        strangers = [await RawClient.connect(server.port) for _ in range(3)]
        for stranger in strangers:
            stranger.writer.write(struct.pack(">i", 500_000) + bytes(150_000))
        await until(lambda: server.strangers_memory.used > 300_000)
        assert server.memory.used == 0
        names = [MetadataRequest.Topic(name=f"t{index:06}") for index in range(10_000)]
        assert len((await known.call(MetadataRequest(topics=names))).topics) == 10_000
        for client in (known, *strangers):
            await client.close()
        await until(lambda: not server._connections)
        assert (server.memory.used, server.strangers_memory.used) == (0, 0)

    with_server(test, *SASL, "queued.max.request.bytes=300000", "auto.create.topics.enable=false")


def test_a_large_token_leaves_nothing_counted(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        await client.call(VERSIONS, 3)
        await shake(client)
        sent = frame(SaslAuthenticateRequest(auth_bytes=ALICE, unknown_tags={7: bytes(200_000)}), 2)
        client.writer.write(sent[:150_000])
        await until(lambda: server.strangers_memory.used > 100_000)
        client.writer.write(sent[150_000:])
        assert (await client.receive(36, 2))[1].error_code == 0
        await until(lambda: server.strangers_memory.used == 0)
        assert (await client.call(METADATA)).controller_id == 1
        assert server.memory.used == 0
        await client.close()

    with_server(test, *SASL)


def test_failures_are_told_and_counted(with_server: Run, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def test(server: Server) -> None:
        for wrong in (b"\0alice\0wrong", b"\0nobody\0secret", b"junk"):
            client = await RawClient.connect(server.port)
            await shake(client)
            await client.call(SaslAuthenticateRequest(auth_bytes=wrong))
            await client.close()
        client = await RawClient.connect(server.port)
        assert await shake(client, "GSSAPI\nall is well") == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        await client.close()
        client = await RawClient.connect(server.port)
        await log_in(client)
        await client.close()
        audit = server.broker.audit
        assert (audit.authentications, audit.failed_authentications) == ({"PLAIN": 1}, {"PLAIN": 3, "unknown": 1})

    with_server(test, *SASL)
    failed = [record.getMessage() for record in caplog.records if record.name == "kohort.broker.authentication"]
    assert len(failed) == 3  # those of a wrong name and a wrong password say the same
    assert "mechanism=PLAIN reason=Authentication failed: Invalid username or password" in failed[0]
    assert "expected 3 tokens, got 1" in failed[1]
    assert "GSSAPI" in failed[2]
    assert not any("\n" in line or "secret" in line or "wrong" in line for line in failed)


FRAMES = (
    frame(VERSIONS, 3),
    frame(SaslHandshakeRequest(mechanism="PLAIN"), 1),
    frame(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 0),
    frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2),
    frame(SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=x"), 1),
    frame(METADATA, 12),
)


def test_mutated_exchanges_learn_nothing(with_server: Run) -> None:
    with_server(lambda server: fuzz(server, FRAMES, 1, 300), *SASL)
