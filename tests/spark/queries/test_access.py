"""Who may ask the HTTP server of an instance; others are refused, and keep nobody waiting."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import ClientError

from kohort.http_access import HttpAccess
from kohort.spark.program.settings import AppSettings
from kohort.spark.queries import bounded_server, http_server
from tests.certificates import Certificates
from tests.spark.monitoring.events import tasks
from tests.spark.queries.fakes import PARTITIONS, Instances, partition_of, window_key
from tests.spark.queries.test_http_server import PATH, VALUE

TOKEN = "0123456789abcdef"
MESSAGE_PACK = {"Content-Type": "application/msgpack"}
ALLOWED = {"Authorization": f"Bearer {TOKEN}"}


def with_token(tmp_path: Path) -> HttpAccess:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    return HttpAccess.load("application_server_", token_file=file)


def with_instances(access: HttpAccess, test: Callable[[Instances], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Instances(2, access=access) as instances:
            await test(instances)

    asyncio.run(main())


@pytest.mark.parametrize("path", ["/", "/health", "/metrics", "/tasks", "/stores", PATH, "/nowhere"])
def test_nothing_is_answered_without_the_token(tmp_path: Path, path: str) -> None:
    async def test(two: Instances) -> None:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
            reply = await two.get(path, headers=headers)
            assert reply.status == 401
            assert reply.headers["WWW-Authenticate"] == 'Bearer realm="kohort"'
            assert reply.json["error"] == "unauthorized"
        assert (await two.get("/metrics", headers=ALLOWED)).status == 200

    with_instances(with_token(tmp_path), test)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_what_supervises_needs_no_token(tmp_path: Path, path: str) -> None:
    async def test(two: Instances) -> None:
        two.overviews[0].tasks(tasks(0.0, ["0_0"]))
        reply = await two.get(path)
        assert (reply.status, reply.body) == (200, b"ok\n")
        assert (await two.get(path, method="HEAD")).status == 200
        assert (await two.get(path, method="POST")).status == 401

    with_instances(with_token(tmp_path), test)


def owned_by_the_second(two: Instances) -> None:
    two.own("delays", dict.fromkeys(range(PARTITIONS), 1))
    two.fakes[1].opens("delays", partition_of("JFK"), {window_key("JFK"): VALUE})


def test_instances_ask_each_other_with_the_token(tmp_path: Path) -> None:
    async def test(two: Instances) -> None:
        owned_by_the_second(two)
        reply = await two.get(PATH, headers=ALLOWED)
        assert (reply.status, reply.json["value"]) == (200, {"n": 12, "mean": 3.5})
        assert (await two.get("/forwarded", method="POST", data=b"x")).status == 401

    with_instances(with_token(tmp_path), test)


def test_client_certificates(tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    access = HttpAccess.load("", certfile=files.cert, keyfile=files.key, cafile=files.ca)

    async def test(two: Instances) -> None:
        owned_by_the_second(two)
        reply = await two.get(PATH, ssl=files.client(own=True))
        assert (reply.status, reply.json["value"]) == (200, {"n": 12, "mean": 3.5})
        for context in (files.client(), files.client(foreign=True)):
            with pytest.raises((ClientError, OSError)):
                await two.get(PATH, ssl=context)

    with_instances(access, test)


def test_one_who_sends_no_whole_request_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (bounded_server, http_server):
        monkeypatch.setattr(module, "FIRST_REQUEST_S", 0.05)

    async def test(two: Instances) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", two.servers[0].port)
        writer.write(b"GET /tasks HTTP/1.1\r\nX: ")
        with pytest.raises(ConnectionError):
            raise ConnectionError(await asyncio.wait_for(reader.read(), 30))
        writer.transport.abort()
        reply = await two.get("/forwarded", method="POST", data=never(), headers=ALLOWED | MESSAGE_PACK)
        assert reply.status == 408

    async def never() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.Event().wait()

    with_instances(with_token(tmp_path), test)


def test_many_who_send_nothing_keep_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_server, "MAX_CONNECTIONS", 8)

    async def test(two: Instances) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", two.servers[0].port) for _ in range(8)]
        assert (await two.get("/tasks", headers=ALLOWED)).status == 200
        with pytest.raises(ConnectionError):
            raise ConnectionError(await asyncio.wait_for(silent[0][0].read(), 30))
        for _, writer in silent:
            writer.transport.abort()

    with_instances(with_token(tmp_path), test)


def test_too_much_is_refused(tmp_path: Path) -> None:
    async def test(two: Instances) -> None:
        assert (await two.get("/tasks", headers=ALLOWED | {"X": "x" * 100_000})).status == 400
        large = await two.get(
            "/forwarded", method="POST", data=io.BytesIO(bytes(2 << 20)), headers=ALLOWED | MESSAGE_PACK
        )
        assert large.status == 413
        assert (await two.get("/tasks", headers=ALLOWED)).status == 200

    with_instances(with_token(tmp_path), test)


def test_without_a_host_only_this_machine_reaches_it() -> None:
    assert AppSettings.of("a", "localhost:9092", application_server=":8080").endpoint == ("127.0.0.1", 8080)
