from __future__ import annotations

import asyncio
import errno
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiohttp import ClientSession

from kohort.spark.errors import ApplicationError
from kohort.spark.monitoring.events import Listeners
from kohort.spark.observability import Observability
from kohort.streams.endpoint import Endpoint
from tests.spark.monitoring.events import epoch, tasks
from tests.spark.queries.fakes import FakeInstance


def test_server_journal_and_live_line(tmp_path: Path) -> None:
    async def test() -> None:
        journal = tmp_path / "one.jsonl"
        observability = Observability(
            "app", FakeInstance(), application_server=("127.0.0.1", 0), journal=journal, progress=True
        )
        await observability.start()
        assert observability.endpoint is not None
        listeners = Listeners(observability.listeners)
        listeners.tasks(tasks(0.0, ["0_0"]))
        listeners.epoch(epoch(1.0, records=5))
        base = f"http://127.0.0.1:{observability.endpoint.port}"
        async with ClientSession() as session:
            async with session.get(f"{base}/metrics") as response:
                assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                assert 'kafka_streams_process_total{subtopology="0"} 5.0' in await response.text()
            async with session.get(f"{base}/health") as response:
                assert (response.status, (await response.json())["status"]) == (200, "running")
            async with session.get(f"{base}/tasks") as response:
                assert (await response.json())["active"] == ["0_0"]
            listeners.failed("all is lost")
            async with session.get(f"{base}/health") as response:
                assert (response.status, (await response.json())["failure"]) == (503, "all is lost")
        await observability.close()
        await observability.close()
        assert [json.loads(line)["event"] for line in journal.read_text().splitlines()] == [
            "started", "tasks", "epoch", "failed", "stopped",
        ]  # fmt: skip

    asyncio.run(test())


def test_nothing_but_listeners() -> None:
    async def test() -> None:
        observability = Observability("app", FakeInstance(), progress=False)
        await observability.start()
        Listeners(observability.listeners).epoch(epoch(1.0))
        await observability.close()
        assert observability.endpoint is None

    asyncio.run(test())


async def _create_server_as_newer_python(
    loop: asyncio.BaseEventLoop, protocol: Any, host: Any = None, *rest: Any, **options: Any
) -> asyncio.Server:
    """As Python 3.13, whose error has no errno if none of the addresses is the machine's."""
    try:
        return await _create_server(loop, protocol, host, *rest, **options)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise OSError(f"could not bind on any address out of {host!r}") from None
        raise


_create_server = asyncio.BaseEventLoop.create_server


@pytest.mark.parametrize("newer", [False, True], ids=["this Python", "Python 3.13"])
@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_an_address_of_another_machine_and_a_port_in_use(
    new_loop: Callable[[], asyncio.AbstractEventLoop], newer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if newer:
        monkeypatch.setattr(asyncio.BaseEventLoop, "create_server", _create_server_as_newer_python)

    async def test() -> None:
        observability = Observability("app", FakeInstance(), application_server=("192.0.2.1", 0), progress=False)
        await observability.start()  # behind a NAT: others reach it there, it listens on what it has
        assert observability.endpoint is not None
        assert observability.endpoint == Endpoint("192.0.2.1", observability.endpoint.port)
        async with (
            ClientSession() as session,
            session.get(f"http://127.0.0.1:{observability.endpoint.port}/health") as got,
        ):
            assert got.status == 200
        await observability.close()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            other = Observability("app", FakeInstance(), application_server=taken.getsockname(), progress=False)
            with pytest.raises(
                ApplicationError, match=r'application_server="127.0.0.1:\d+": .* port is in use: give each'
            ):
                await other.start()
            await other.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(test())


def test_an_instance_without_a_live_line_and_a_server_loads_nothing_for_them() -> None:
    program = """
import sys
from types import SimpleNamespace
import kohort.spark.runtime.application
from kohort.spark.observability import Observability
Observability("app", SimpleNamespace(lags=dict), progress=False)
print([name for name in ("aiohttp", "rich") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr
