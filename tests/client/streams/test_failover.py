"""Real members against a broker: one is killed, paused or cut off, and tasks move; how long the others wait."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kohort.client.streams_member import Assigned, Lost, Role, State
from tests.client.streams.member_process import ASKS
from tests.client.streams.test_streams_member import Application, broker, joined
from tests.faults.proxy import FaultyProxy
from tests.waiting import run, until

ALL = [0, 1, 2, 3]
SESSION_MS = 3_000
KAFKAS: dict[str, Any] = {
    "group.streams.heartbeat.interval.ms": 15_000,
    "group.streams.session.timeout.ms": 45_000,
    "group.streams.assignment.interval.ms": 1_000,
    "group.streams.num.warmup.replicas": 0,
}
"""Kafka's own settings, which those of tests aren't; but for heartbeats, which are as rare as they may be."""


@asynccontextmanager
async def process(servers: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A member in a process of its own, once it has tasks."""
    command = sys.executable, "-m", "tests.client.streams.member_process", servers, "asks"
    started = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert started.stdout is not None
    try:
        assert await asyncio.wait_for(started.stdout.readline(), 60) == b"assigned\n"
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            started.kill()
        await started.wait()


async def shares(application: Application) -> None:
    """Waits until it has half of the tasks, and the other half is another's."""
    await until(lambda: len(application.has(Role.ACTIVE)) == 2 and application.member.state is State.STABLE)


async def seconds_until_it_has_all(application: Application) -> float:
    began = time.monotonic()
    await until(lambda: application.has(Role.ACTIVE) == ALL)
    return time.monotonic() - began


def test_the_tasks_of_a_process_that_is_killed_are_anothers_at_once() -> None:
    async def test() -> None:
        async with broker(**KAFKAS) as server, joined(server.bootstrap_servers, **ASKS) as survivor:
            async with process(server.bootstrap_servers) as victim:
                await shares(survivor)
                await asyncio.sleep(KAFKAS["group.streams.assignment.interval.ms"] / 1_000)  # of the last placement
                victim.send_signal(signal.SIGKILL)
                took = await seconds_until_it_has_all(survivor)
            assert took < 10  # the next heartbeat may be 15 s away, the end of the session 45 s
            assert not survivor.seen(Lost)

    run(test())


@pytest.mark.long
def test_a_process_that_is_paused_keeps_its_tasks_until_its_session_ends() -> None:
    async def test() -> None:
        settings = KAFKAS | {"group.streams.session.timeout.ms": SESSION_MS, "group.streams.heartbeat.interval.ms": 500}
        async with broker(**settings) as server, joined(server.bootstrap_servers, **ASKS) as survivor:
            async with process(server.bootstrap_servers) as victim:
                await shares(survivor)
                victim.send_signal(signal.SIGSTOP)
                took = await seconds_until_it_has_all(survivor)
            assert took > (SESSION_MS - 1_000) / 1_000

    run(test())


@pytest.mark.parametrize(
    "asks",
    [
        pytest.param(ASKS, id="both"),
        pytest.param({"disconnect_timeout_ms": 1_000}, id="without held heartbeats", marks=pytest.mark.long),
    ],
)
def test_a_member_that_is_cut_off_and_comes_back_in_time_has_lost_nothing(asks: dict[str, Any]) -> None:
    async def test() -> None:
        async with (
            broker(**KAFKAS) as server,
            FaultyProxy(server.bootstrap_servers) as proxy,
            joined(proxy.bootstrap, **asks) as one,
            joined(server.bootstrap_servers, **asks) as other,
        ):
            await shares(one)
            await shares(other)
            tasks, epoch, events = one.has(Role.ACTIVE), one.member.group_metadata().generation, len(one.events)
            for _ in range(3):
                await proxy.cut()
                await asyncio.sleep(1.3)  # longer than it may be away
            assert (one.has(Role.ACTIVE), len(one.events)) == (tasks, events)
            assert one.member.group_metadata().generation == epoch
            assert one.member.state is other.member.state is State.STABLE

    run(test())


def test_a_task_that_moves_does_not_wait_for_heartbeats() -> None:
    async def test() -> None:
        async with broker(**KAFKAS) as server, joined(server.bootstrap_servers, **ASKS) as old:
            await until(lambda: old.has(Role.ACTIVE) == ALL)
            await asyncio.sleep(KAFKAS["group.streams.assignment.interval.ms"] / 1_000)  # of the last placement
            async with joined(server.bootstrap_servers, **ASKS) as new:
                began = time.monotonic()
                await until(lambda: len(new.has(Role.ACTIVE)) == 2)
                took = time.monotonic() - began
            assert took < 10  # a heartbeat interval is 15 s
            assert await seconds_until_it_has_all(old) < 4
            assert not old.seen(Lost) and len(old.seen(Assigned)) == 2

    run(test())


def test_a_member_that_asks_for_nothing_has_no_heartbeat_held() -> None:
    async def test() -> None:
        async with broker() as server, joined(server.bootstrap_servers) as old, joined(server.bootstrap_servers) as new:
            await shares(old)
            await shares(new)
            assert not any(len(shard.streams._held) for shard in server.server.broker.groups.active())

    run(test())
