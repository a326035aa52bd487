"""Groups so large that placing their tasks takes a while."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kohort.broker.streams.placer import SMALL
from kohort.broker.streams.solver import Solver
from kohort.protocol.errors import ErrorCode
from tests.broker.conftest import Run
from tests.broker.streams.members import PATIENCE, Crowd, StreamsClient, stateless, statuses
from tests.broker.streams.solvers import SILENT, Gate


async def large(crowd: Crowd) -> StreamsClient:
    """A member of a group with many tasks."""
    crowd.topics.create("words", SMALL)
    return await crowd.joined(stateless("words"))


async def until_placed(member: StreamsClient, number: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(member.active) != number:
            await member.beat()
            await asyncio.sleep(0.005)


def test_heartbeats_are_answered_while_tasks_are_placed(with_crowd: Run) -> None:
    solver = Gate()

    async def test(crowd: Crowd) -> None:
        member = await large(crowd)

        for _ in range(3):
            assert list(statuses(await member.beat())) == [5]
        assert crowd.server.broker.groups.placer.pending == 1

        solver.open()
        await until_placed(member, SMALL)

    with_crowd(test, solver=solver)


def test_a_placement_for_a_group_that_has_moved_on_is_dropped(with_crowd: Run) -> None:
    solver = Gate()

    async def test(crowd: Crowd) -> None:
        first = await large(crowd)
        second = await crowd.joined(stateless("words"))
        await second.leave()
        solver.open()

        await until_placed(first, SMALL)

        placer = crowd.server.broker.groups.placer
        assert (placer.pending, placer.solved["optimal"]) == (0, 2)

    with_crowd(test, solver=solver)


def test_tasks_are_placed_by_another_process(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        await until_placed(await large(crowd), SMALL)

    with_crowd(test, solver=Solver())


def test_a_group_whose_tasks_the_process_cannot_place_gets_them_all_the_same(with_crowd: Run) -> None:
    solver = Solver(SILENT)

    async def test(crowd: Crowd) -> None:
        crowd.server.broker.groups.placer.ready = True
        member = await large(crowd)
        async with asyncio.timeout(PATIENCE):
            while not solver.running:
                await asyncio.sleep(0.01)

        solver.stop_process()

        await until_placed(member, SMALL)
        assert crowd.server.broker.groups.placer.failed == {"optimal": 1}

    with_crowd(test, solver=solver)


def test_the_server_stops_while_tasks_are_placed(with_crowd: Run) -> None:
    solver = Solver(SILENT)

    async def test(crowd: Crowd) -> None:
        crowd.server.broker.groups.placer.ready = True
        await large(crowd)
        async with asyncio.timeout(PATIENCE):
            while not solver.running:
                await asyncio.sleep(0.01)

    threads = set(threading.enumerate())
    with_crowd(test, solver=solver)
    assert set(threading.enumerate()) <= threads
    assert not solver.running


def test_a_join_that_fails_is_answered(with_crowd: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(crowd: Crowd) -> None:
        member = await crowd.member(stateless("words"))
        monkeypatch.setattr(crowd.server.broker.groups, "submit", None)

        assert (await member.join()).error_code == ErrorCode.UNKNOWN_SERVER_ERROR

    with_crowd(test)
