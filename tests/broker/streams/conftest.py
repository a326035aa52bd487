from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kohort.broker.server import Server
from kohort.broker.streams import placer
from kohort.broker.streams.solver import Solver
from tests.broker.streams.members import Crowd
from tests.broker.streams.solvers import InProcess

Test = Callable[[Crowd], Coroutine[Any, Any, None]]


@pytest.fixture
def with_crowd(with_server: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs a coroutine function with clients of a server whose streams groups don't wait for more members.

    Tasks are placed without a process, unless another solver is given, and small groups are always waited for.
    """

    def run(test: Test, *settings: str, solver: Solver | None = None, **options: Any) -> None:
        monkeypatch.setattr(placer, "PATIENCE_SECONDS", 30.0)
        monkeypatch.setattr(placer, "TURN_SECONDS", 30.0)

        async def with_clients(server: Server) -> None:
            server.broker.groups.placer._solver = solver or InProcess()
            crowd = Crowd(server)
            try:
                await test(crowd)
            finally:
                await crowd.close()

        with_server(with_clients, "group.streams.initial.rebalance.delay.ms=0", *settings, **options)

    return run
