from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.config import Settings
from kohort.broker.server import Server
from kohort.broker.streams import placer
from kohort.broker.streams.solver import Solver
from tests.broker.streams.members import Crowd
from tests.broker.streams.solvers import InProcess

QUICK = [
    "listeners=PLAINTEXT://127.0.0.1:0",
    "group.initial.rebalance.delay.ms=0",
    "offsets.topic.num.partitions=3",
    "transaction.state.log.num.partitions=3",
]


@contextlib.asynccontextmanager
async def serving(directory: Path, *settings: str, **options: Any) -> AsyncIterator[Server]:
    """A server on a free port, stopped in the end."""
    server = Server(Settings.load(None, {}, [*QUICK, *settings]), data_dir=directory, **options)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


Run = Callable[..., None]
"""What `with_server` and `with_crowd` are: they take a test, and settings."""

Test = Callable[[Server], Coroutine[Any, Any, None]]


@pytest.fixture
def with_server(tmp_path: Path) -> Run:
    """Runs a coroutine function with a server of its own."""

    def run_test(
        test: Test, *settings: str, loop: Callable[[], asyncio.AbstractEventLoop] | None = None, **options: Any
    ) -> None:
        async def main() -> None:
            async with serving(tmp_path, *settings, **options) as server:
                await asyncio.wait_for(test(server), 60)

        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(main())

    return run_test


CrowdTest = Callable[[Crowd], Coroutine[Any, Any, None]]


@pytest.fixture
def with_crowd(with_server: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a coroutine function with clients of a server whose streams groups don't wait for more members.

    Tasks are placed without a process, unless another solver is given, and small groups are always waited for.
    """

    def run_test(
        test: Callable[[Crowd], Coroutine[Any, Any, None]], *settings: str, solver: Solver | None = None, **options: Any
    ) -> None:
        monkeypatch.setattr(placer, "WAIT_SECONDS", 30.0)
        monkeypatch.setattr(placer, "WAIT_SECONDS_PER_TURN", 30.0)

        async def with_clients(server: Server) -> None:
            server.broker.groups.placer._solver = solver or InProcess()
            crowd = Crowd(server)
            try:
                await test(crowd)
            finally:
                await crowd.close()

        quick = ("group.streams.initial.rebalance.delay.ms=0", "group.streams.assignment.interval.ms=0")
        with_server(with_clients, *quick, *settings, **options)

    return run_test
