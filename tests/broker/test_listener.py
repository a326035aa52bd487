"""Listeners of a running server: several at once, TLS, client certificates, and who doesn't get in."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
import uvloop

from kohort.broker import newcomers, server, tls_acceptor
from kohort.broker.config import ConfigError, Settings
from kohort.broker.connection import Connection
from kohort.broker.server import Server
from kohort.protocol.messages.metadata import MetadataRequest
from kohort.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kohort.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.certificates import CA, pem, trusting, write_stores
from tests.broker.conftest import Run
from tests.broker.raw import RawClient, frame
from tests.waiting import until

METADATA = MetadataRequest(topics=[])
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'

LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
Loop = Callable[[], asyncio.AbstractEventLoop]


@pytest.fixture
def tls(tmp_path: Path) -> tuple[str, ...]:
    """The settings of a listener with TLS, whose clients may show certificates."""
    (tmp_path / "stores").mkdir()
    keystore, truststore = write_stores(tmp_path / "stores")
    return (
        "listeners=SSL://127.0.0.1:0",
        f"ssl.keystore.location={keystore}",
        f"ssl.truststore.location={truststore}",
        "ssl.client.auth=requested",
    )


def principals(server: Server) -> list[str]:
    return [connection.session.principal for connection in server._connections]


@LOOPS
def test_listeners_of_all_protocols_at_once(loop: Loop, tls: tuple[str, ...], with_server: Run) -> None:
    async def test(server: Server) -> None:
        plain, ssl_, sasl_plain, sasl_ssl = (listener.port for listener in server.listeners)
        for port, context, who in (
            (plain, None, None),
            (ssl_, trusting(own="bob"), None),
            (sasl_plain, None, b"\0alice\0secret"),
            (sasl_ssl, trusting(own="bob"), b"\0alice\0secret"),
        ):
            client = await RawClient.connect(port, context)
            if who is not None:
                await client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
                assert (await client.call(SaslAuthenticateRequest(auth_bytes=who))).error_code == 0
            metadata = await client.call(METADATA)
            assert [(broker.host, broker.port) for broker in metadata.brokers] == [
                ("kafka.example", 19_092) if port == sasl_ssl else ("127.0.0.1", port)
            ]
            shown = principals(server)[-1]
            assert shown.startswith({plain: "User:ANONYMOUS", ssl_: "User:CN=bob,"}.get(port, "User:alice"))
            await client.close()
            await until(lambda: not server.broker.metrics.connections)

    with_server(
        test,
        *tls,
        "listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "advertised.listeners=SASL_SSL://kafka.example:19092",
        "sasl.enabled.mechanisms=PLAIN",
        f"plain.sasl.jaas.config={PLAIN}",
        loop=loop,
    )


@LOOPS
def test_requests_that_come_with_the_handshake_and_large_ones(
    loop: Loop, tls: tuple[str, ...], with_server: Run
) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port, trusting())
        names = [MetadataRequest.Topic(name=f"t{index:06}") for index in range(20_000)]
        client.writer.write(frame(METADATA, 12) + frame(MetadataRequest(topics=names), 12, 2))
        assert (await client.receive(3, 12))[0] == 1
        correlation_id, response = await client.receive(3, 12)
        assert (correlation_id, len(response.topics)) == (2, 20_000)
        await client.close()

    with_server(test, *tls, "auto.create.topics.enable=false", loop=loop)


def test_rules_make_names_and_who_has_none_stays_out(tls: tuple[str, ...], with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port, trusting(own="bob"))
        await client.call(METADATA)
        assert principals(server) == ["User:BOB"]
        await client.close()
        stranger = await RawClient.connect(server.port, trusting(own="7"))
        assert await stranger.closed()
        await stranger.close()

    with_server(test, *tls, r"ssl.principal.mapping.rules=RULE:^CN=([a-z]+)\,.*$/$1/U")


@LOOPS
def test_who_shows_no_certificate_stays_out_where_one_is_required(
    loop: Loop, tls: tuple[str, ...], with_server: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "kohort.broker.tls")

    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port, trusting())
        client.writer.write(frame(METADATA, 12))
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
            await asyncio.wait_for(client.reader.read(1), 10)
        await client.close()
        await until(lambda: not server.broker.metrics.connections)
        assert "ssl.client.auth is required" in caplog.text
        await (await RawClient.connect(server.port, trusting(own="bob"))).close()

    with_server(test, *tls, "ssl.client.auth=required", loop=loop)


@LOOPS
@pytest.mark.parametrize(
    "sent", [frame(METADATA, 12), b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\0\1", b"\0" * 70_000]
)
def test_what_is_no_tls_is_not_answered(
    sent: bytes, loop: Loop, tls: tuple[str, ...], with_server: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "kohort.broker.tls")

    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        client.writer.write(sent)
        client.writer.write_eof()
        answer = await asyncio.wait_for(client.reader.read(), 10)
        assert len(answer) <= 7  # an alert of TLS at most
        await client.close()
        await until(lambda: not server.broker.metrics.connections)
        assert "TLS handshake failed" in caplog.text

    with_server(test, *tls, loop=loop)


@LOOPS
def test_unfinished_handshakes_count_and_end(
    loop: Loop, tls: tuple[str, ...], with_server: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_acceptor, "HANDSHAKE_SECONDS", 0.5)

    async def test(server: Server) -> None:
        silent = [await RawClient.connect(server.port) for _ in range(3)]
        await until(lambda: server.broker.metrics.connections == 3)
        refused = await RawClient.connect(server.port)
        assert await refused.closed()
        for client in silent:
            assert await client.closed()
        await until(lambda: not server.broker.metrics.connections)
        await (await RawClient.connect(server.port, trusting())).close()
        for client in (refused, *silent):
            await client.close()

    with_server(test, *tls, "max.connections=3", loop=loop)


@LOOPS
@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT"])
def test_silent_connections_leave_room_for_others(
    loop: Loop, protocol: str, tls: tuple[str, ...], with_server: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newcomers, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(server, "newcomers", lambda: 5)

    async def test(server: Server) -> None:
        silent = []
        for _ in range(20):
            silent.append(await RawClient.connect(server.port))
            await until(lambda: len(server.newcomers) == min(5, len(silent)))
        for client in silent[:15]:
            assert await client.closed()
        await until(lambda: server.broker.metrics.connections == 5)
        assert len(server.newcomers) == 5
        for client in silent:
            await client.close()
        await until(lambda: not server.broker.metrics.connections)
        assert not len(server.newcomers)

    with_server(
        test,
        *tls,
        f"listeners={protocol}://127.0.0.1:0",
        "sasl.enabled.mechanisms=PLAIN",
        f"plain.sasl.jaas.config={PLAIN}",
        loop=loop,
    )


def test_strangers_do_not_take_all_the_connections_there_may_be(
    with_server: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newcomers, "PATIENCE_SECONDS", 0.0)

    async def test(server: Server) -> None:
        silent = [await RawClient.connect(server.port) for _ in range(3)]
        await until(lambda: server.broker.metrics.connections == 3)
        refused = await RawClient.connect(server.port)
        assert await refused.closed()
        assert await silent[0].closed()
        client = await RawClient.connect(server.port)
        assert (await client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)).error_code == 0
        for each in (*silent, refused, client):
            await each.close()

    with_server(
        test,
        "listeners=SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms=PLAIN",
        f"plain.sasl.jaas.config={PLAIN}",
        "max.connections=3",
    )


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_who_is_not_trusted_any_more_stays_out_with_an_old_session(
    version: ssl.TLSVersion, tls: tuple[str, ...], tmp_path: Path, with_server: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CERTIFICATES_SECONDS", 0.01)
    context = trusting(own="bob")
    context.maximum_version = version

    def session(port: int, before: ssl.SSLSession | None) -> ssl.SSLSession | None:
        """Asks for metadata; returns the session to go on with."""
        with (
            socket.create_connection(("127.0.0.1", port), 10) as plain,
            context.wrap_socket(plain, server_hostname="localhost", session=before) as client,
        ):
            client.sendall(frame(METADATA, 12))
            assert client.recv(1)
            return client.session

    async def test(server: Server) -> None:
        mine = await asyncio.to_thread(session, server.port, None)
        await asyncio.to_thread(session, server.port, mine)
        trusted = server.listeners[0].tls
        assert trusted is not None
        before = trusted.context
        trustme.CA().cert_pem.write_to_path(tmp_path / "stores" / "ca.pem")
        await until(lambda: trusted.context is not before)
        with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
            await asyncio.to_thread(session, server.port, mine)

    with_server(test, *tls, "ssl.client.auth=required")


@LOOPS
def test_who_is_cut_off_right_after_its_handshake_is_counted_once(
    loop: Loop, tls: tuple[str, ...], with_server: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(server: Server) -> None:
        acceptor = server.listeners[0]._acceptor
        assert acceptor is not None
        made = Connection.connection_made

        def cut_off(connection: Connection, transport: asyncio.BaseTransport) -> None:
            made(connection, transport)
            for task in acceptor._tasks:
                task.cancel()

        monkeypatch.setattr(Connection, "connection_made", cut_off)
        client = await RawClient.connect(server.port, trusting())
        assert await client.closed()
        await client.close()
        await until(lambda: not server._connections)
        assert server.broker.metrics.connections == 0

    with_server(test, *tls, loop=loop)


@LOOPS
def test_who_has_to_go_while_it_is_told_why_is_counted_no_more(
    loop: Loop, tls: tuple[str, ...], with_server: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newcomers, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(tls_acceptor, "_TOLD_SECONDS", 60.0)

    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        client.writer.write(frame(METADATA, 12))
        await asyncio.wait_for(client.reader.read(), 10)  # up to the end: it is being told
        server.newcomers.make_room()
        await until(lambda: not server.broker.metrics.connections)
        await client.close()

    with_server(test, *tls, loop=loop)


@LOOPS
def test_a_server_stops_amid_handshakes(loop: Loop, tls: tuple[str, ...], with_server: Run) -> None:
    async def test(server: Server) -> None:
        silent = await RawClient.connect(server.port)
        await until(lambda: server.broker.metrics.connections == 1)
        await asyncio.wait_for(server.stop(), 5)
        assert not server.broker.metrics.connections
        await silent.close()

    with_server(test, *tls, loop=loop)


def test_new_certificates_are_taken_up_while_it_runs(
    tls: tuple[str, ...], tmp_path: Path, with_server: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CERTIFICATES_SECONDS", 0.01)

    async def serial(server: Server) -> str:
        client = await RawClient.connect(server.port, trusting())
        seen: str = client.writer.get_extra_info("ssl_object").getpeercert()["serialNumber"]
        await client.close()
        return seen

    async def test(server: Server) -> None:
        before = await serial(server)
        (tmp_path / "stores" / "server.pem").write_text(pem(CA.issue_cert("localhost")))
        while await serial(server) == before:
            await asyncio.sleep(0.01)

    with_server(test, *tls)


def test_tls_at_a_listener_without_it_is_explained(with_server: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def test(server: Server) -> None:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await RawClient.connect(server.port, trusting())
        assert "this looks like TLS, but the listener is PLAINTEXT: set security.protocol=PLAINTEXT" in caplog.text

    with_server(test)


def test_a_client_that_is_gone_at_once(tls: tuple[str, ...], with_server: Run) -> None:
    async def test(server: Server) -> None:
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", server.port)) as gone:
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await until(lambda: server.broker.metrics.accepted >= 20 and not server.broker.metrics.connections)

    with_server(test, *tls)


SASL = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0"}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"listeners": "SSL://:0"}, "a listener with SSL needs a certificate"),
        (SASL, r"SASL_PLAINTEXT, sasl.enabled.mechanisms \(default\): GSSAPI isn't served; there are PLAIN, SCRAM-SHA"),
        (SASL | {"sasl.enabled.mechanisms": ""}, "so nobody could authenticate"),
        (SASL | {"sasl.enabled.mechanisms": "PLAIN"}, "PLAIN has no users; listener.name.sasl_plaintext.plain.sasl"),
        (
            SASL | {"sasl.enabled.mechanisms": "SCRAM-SHA-256", "sasl.jaas.config": PLAIN},
            "SCRAM-SHA-256 needs .*ScramLoginModule, but sasl.jaas.config .* has .*PlainLoginModule",
        ),
    ],
)
def test_a_listener_that_can_not_be_had_ends_the_start(settings: dict[str, str], problem: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=problem):
        Server(Settings.of(settings), data_dir=tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_sasl_ssl_asks_for_certificates_only_if_the_listener_does(tls: tuple[str, ...], with_server: Run) -> None:
    async def test(server: Server) -> None:
        lenient, strict = server.listeners
        await (await RawClient.connect(lenient.port, trusting())).close()
        client = await RawClient.connect(strict.port, trusting())
        client.writer.write(frame(SaslHandshakeRequest(mechanism="PLAIN"), 1))
        assert await client.closed()
        await client.close()

    with_server(
        test,
        *tls,
        "listener.security.protocol.map=A:SASL_SSL,B:SASL_SSL",
        "listeners=A://127.0.0.1:0,B://127.0.0.1:0",
        "ssl.client.auth=required",
        "listener.name.b.ssl.client.auth=required",
        "sasl.enabled.mechanisms=PLAIN",
        f"plain.sasl.jaas.config={PLAIN}",
    )
