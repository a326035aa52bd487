"""Who may ask the metrics endpoint, and that those who may not, or are slow, keep nobody waiting."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from kohort.broker.metrics import MetricsPort
from kohort.broker.metrics import endpoint as endpoint_module
from kohort.broker.server import Server
from kohort.http_access import HttpAccess
from tests.broker.conftest import Run
from tests.certificates import Certificates
from tests.waiting import until

TOKEN = "0123456789abcdef"
METRICS = "GET /metrics HTTP/1.1\r\n"


def protected(tmp_path: Path, **files: Path) -> MetricsPort:
    return MetricsPort("", 0, HttpAccess.load("--metrics-", **files))


def with_token(tmp_path: Path, **files: Path) -> MetricsPort:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    return protected(tmp_path, token_file=token, **files)


async def ask(server: Server, request: str, tls: ssl.SSLContext | None = None) -> tuple[str, bytes]:
    """The head of the answer, and its body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.metrics_port, ssl=tls)
    try:
        writer.write(f"{request}\r\n".encode())
        head, _, body = (await asyncio.wait_for(reader.read(), 30)).partition(b"\r\n\r\n")
    finally:
        writer.transport.abort()
    return head.decode(), body


def test_without_a_host_it_listens_on_the_loopback(with_server: Run) -> None:
    async def test(server: Server) -> None:
        assert server._metrics is not None
        assert server._metrics._server is not None
        assert {each.getsockname()[0] for each in server._metrics._server.sockets} == {"127.0.0.1"}

    with_server(test, metrics=MetricsPort("", 0))


@pytest.mark.parametrize("header", ["", "Authorization: Bearer wrong\r\n", f"Authorization: Basic {TOKEN}\r\n"])
def test_a_missing_or_wrong_token_is_a_401_that_says_what_is_needed(
    with_server: Run, tmp_path: Path, header: str
) -> None:
    async def test(server: Server) -> None:
        head, body = await ask(server, METRICS + header)
        assert head.startswith("HTTP/1.1 401 Unauthorized\r\n")
        assert 'WWW-Authenticate: Bearer realm="kohort"' in head
        assert body == b"a token is needed, in the header Authorization: Bearer TOKEN\n"

    with_server(test, metrics=with_token(tmp_path))


def test_the_right_token_is_answered_and_health_needs_none(with_server: Run, tmp_path: Path) -> None:
    async def test(server: Server) -> None:
        head, body = await ask(server, f"{METRICS}Host: here\r\nauthorization: bearer {TOKEN}\r\n")
        assert head.startswith("HTTP/1.1 200 OK\r\n")
        assert b"kohort_connections 0.0" in body
        assert (await ask(server, "GET /healthz HTTP/1.1\r\n"))[1] == b"ok\n"

    with_server(test, metrics=with_token(tmp_path))


def test_client_certificates(with_server: Run, tmp_path: Path) -> None:
    files = Certificates(tmp_path)

    async def test(server: Server) -> None:
        head, _ = await ask(server, METRICS, files.client(own=True))
        assert head.startswith("HTTP/1.1 200 OK\r\n")
        for context in (files.client(), files.client(foreign=True)):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                raise ConnectionError(await ask(server, METRICS, context))
        assert await ask_in_plain(server) == b""

    async def ask_in_plain(server: Server) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.metrics_port)
        writer.write(f"{METRICS}\r\n".encode())
        try:
            answer = await asyncio.wait_for(reader.read(), 30)
        except ConnectionError:
            answer = b""
        writer.transport.abort()
        return b"" if b"HTTP" not in answer else answer

    with_server(test, metrics=protected(tmp_path, certfile=files.cert, keyfile=files.key, cafile=files.ca))


def test_a_token_over_tls(with_server: Run, tmp_path: Path) -> None:
    files = Certificates(tmp_path)

    async def test(server: Server) -> None:
        assert (await ask(server, METRICS, files.client()))[0].startswith("HTTP/1.1 401 ")
        allowed = f"{METRICS}Authorization: Bearer {TOKEN}\r\n"
        assert (await ask(server, allowed, files.client()))[0].startswith("HTTP/1.1 200 ")

    with_server(test, metrics=with_token(tmp_path, certfile=files.cert, keyfile=files.key))


def test_many_who_send_nothing_keep_nobody_waiting(with_server: Run, tmp_path: Path) -> None:
    async def test(server: Server) -> None:
        silent = [
            await asyncio.open_connection("127.0.0.1", server.metrics_port)
            for _ in range(endpoint_module.MAX_CONNECTIONS + 1)
        ]
        assert (await ask(server, "GET /healthz HTTP/1.1\r\n"))[1] == b"ok\n"
        oldest, _ = silent[0]
        with pytest.raises(ConnectionError):
            raise ConnectionError(await asyncio.wait_for(oldest.read(), 30))
        for _, writer in silent:
            writer.transport.abort()

    with_server(test, metrics=with_token(tmp_path))


def test_handshakes_that_nobody_finishes_are_few(
    with_server: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_module, "MAX_HANDSHAKES", 5)
    files = Certificates(tmp_path)

    async def test(server: Server) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", server.metrics_port) for _ in range(6)]
        refused, _ = silent[5]
        assert await asyncio.wait_for(refused.read(), 30) == b""
        for _, writer in silent:
            writer.transport.abort()
        assert server._metrics is not None
        newcomers = server._metrics._newcomers
        await until(lambda: not len(newcomers))
        assert (await ask(server, METRICS, files.client(own=True)))[0].startswith("HTTP/1.1 200 ")

    with_server(test, metrics=protected(tmp_path, certfile=files.cert, keyfile=files.key, cafile=files.ca))


def test_one_who_is_slow_is_cut_off(with_server: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "TIMEOUT_SECONDS", 0.05)

    async def test(server: Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.metrics_port)
        writer.write(b"GET /me")
        with pytest.raises(ConnectionError):
            raise ConnectionError(await asyncio.wait_for(reader.read(), 30))
        writer.transport.abort()

    with_server(test, metrics=with_token(tmp_path))
