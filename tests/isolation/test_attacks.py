"""No request makes others wait or throws them out of their groups, and 1 GiB is enough for all of them together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.broker.handlers import MAX_ITEMS
from tests.interop.servers import KohortServer
from tests.isolation.attacks import Attack, attacks
from tests.isolation.frames import longest_arrays
from tests.isolation.watch import Waits, Watch, peak_memory

LONGEST_WORK = 0.25
"""Processor seconds of the server between a heartbeat and its answer: by the clock, if nothing else runs."""

ENOUGH_MEMORY = 1024 * 1024 * 1024


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KohortServer]:
    server = KohortServer(tmp_path)
    server.start()
    yield server
    server.stop()


def attacked(server: KohortServer, wanted: list[Attack]) -> dict[str, Waits]:
    """What members of groups saw of each attack."""

    async def main() -> dict[str, Waits]:
        async with Watch(server.port, server.pid) as watch:
            return {attack.name: await watch.beside(attack) for attack in wanted}

    return asyncio.run(main())


def judge(server: KohortServer, found: dict[str, Waits]) -> None:
    hurt = {name: waits for name, waits in found.items() if waits.errors or waits.longest_work > LONGEST_WORK}
    assert not hurt
    assert peak_memory(server.pid) < ENOUGH_MEMORY


def test_attacks_in_small(server: KohortServer) -> None:
    judge(server, attacked(server, attacks(0.02)))


@pytest.mark.long
@pytest.mark.timeout(600)
def test_attacks(server: KohortServer) -> None:
    judge(server, attacked(server, attacks()))


def of_every_api(length: int) -> list[Attack]:
    return [Attack(name, lambda data=data: [data]) for name, data in longest_arrays(length)]  # type: ignore[misc]


def test_long_arrays_of_every_api(server: KohortServer) -> None:
    frames = [data for _, data in longest_arrays(300)]
    judge(server, attacked(server, [Attack("all", lambda: frames)]))


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("length", [MAX_ITEMS * 9 // 10, MAX_ITEMS * 11 // 10])
def test_the_longest_arrays_of_every_api(server: KohortServer, length: int) -> None:
    """The longest that are taken, and longer ones, which are refused."""
    judge(server, attacked(server, of_every_api(length)))
