"""Placement of tasks in another process, with and without waiting for it."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.streams import placer as placer_module
from kohort.broker.streams import solver as solver_module
from kohort.broker.streams.placer import SMALL, TINY, Placer
from kohort.broker.streams.solver import Solver, SolverError
from kohort.coordinator.placement import ASSIGNORS, TaskId, place_without_solver
from kohort.coordinator.placement.model import Group, Member, Placement, SubtopologyTasks
from kohort.coordinator.streams.environment import PlacementJob
from tests.broker.streams.solvers import ABSENT, MORTAL, SILENT, InProcess

Came = tuple[PlacementJob, Placement | None]


def group(tasks: int) -> Group:
    return Group((SubtopologyTasks("0", tasks, 1),), tuple(Member(f"m{number}") for number in range(3)))


def job(tasks: int, assignor: str = "optimal") -> PlacementJob:
    return PlacementJob("group", 1, assignor, group(tasks))


class Placing:
    """A placer, and what came of its jobs."""

    def __init__(self, solver: Solver) -> None:
        self.came: asyncio.Queue[Came] = asyncio.Queue()
        self.placer = Placer(solver)
        self.placer.on_placed.append(lambda *came: self.came.put_nowait(came))

    async def later(self) -> Came:
        return await asyncio.wait_for(self.came.get(), 30)

    async def get_ready(self) -> None:
        ready = asyncio.Event()
        self.placer.start(ready.set)
        await asyncio.wait_for(ready.wait(), 30)


def with_placing(test: Callable[[Placing], Coroutine[Any, Any, None]], solver: Solver) -> None:
    """Run a test; in the end, no thread is left."""

    async def main() -> None:
        placing = Placing(solver)
        try:
            await test(placing)
        finally:
            placing.placer.stop()

    threads = set(threading.enumerate())
    asyncio.run(main())
    assert set(threading.enumerate()) == threads
    assert not solver.running


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placer_module, "WAIT_SECONDS", 30.0)


@pytest.mark.usefixtures("patient")
def test_a_small_group_is_waited_for() -> None:
    async def test(placing: Placing) -> None:
        await placing.get_ready()

        assert placing.placer(job(200)) == ASSIGNORS["optimal"](group(200))

    with_placing(test, InProcess())


def test_a_group_of_one_member_is_placed_at_once() -> None:
    alone = PlacementJob("group", 1, "optimal", replace(group(200), members=(Member("only"),)))

    async def test(placing: Placing) -> None:
        placement = placing.placer(alone)

        assert placement is not None and set(placement.active.values()) == {"only"}
        assert (placing.placer.solved["optimal"], placing.placer.pending) == (1, 0)

    with_placing(test, Solver(ABSENT))


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_tiny_group_is_placed_at_once_behind_another_and_before_the_process_is_ready(assignor: str) -> None:
    async def test(placing: Placing) -> None:
        assert placing.placer(job(SMALL)) is None

        tiny = job(TINY - 3, assignor)
        assert placing.placer(tiny) == tiny.run()

        assert placing.placer.solved[assignor] == 1
        await placing.later()

    with_placing(test, InProcess())


def test_a_tiny_group_that_needs_a_solver_is_placed_by_the_process() -> None:
    t0, t1, t2, t3 = tasks = [TaskId("0", number) for number in range(4)]
    costly = Group(
        (SubtopologyTasks("0", 4, 1),),
        (Member("a", standby=frozenset((t0, t1))), Member("b", standby=frozenset(tasks)), Member("c")),
        ends={t0: 1, t1: 100, t2: 50, t3: 7},
    )
    asked = PlacementJob("group", 1, "optimal", costly)
    assert place_without_solver("optimal", costly) is None

    async def test(placing: Placing) -> None:
        await placing.get_ready()
        placement = placing.placer(asked) or (await placing.later())[1]
        assert placement == asked.run()

    with_placing(test, InProcess())


@pytest.mark.usefixtures("patient")
def test_nobody_waits_before_the_process_is_ready() -> None:
    async def test(placing: Placing) -> None:
        asked = job(200)

        assert placing.placer(asked) is None
        assert await placing.later() == (asked, asked.run())

    with_placing(test, InProcess())


@pytest.mark.usefixtures("patient")
def test_nobody_waits_behind_another_group() -> None:
    async def test(placing: Placing) -> None:
        await placing.get_ready()
        large, small = job(SMALL), job(200)

        assert (placing.placer(large), placing.placer(small)) == (None, None)

        assert placing.placer.pending == 2
        assert await placing.later() == (large, large.run())
        assert await placing.later() == (small, small.run())
        assert placing.placer.pending == 0

    with_placing(test, InProcess())


def test_nobody_waits_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placer_module, "WAIT_SECONDS", 0.0)

    async def test(placing: Placing) -> None:
        await placing.get_ready()

        assert placing.placer(job(200)) is None
        assert (await placing.later())[1] is not None

    with_placing(test, InProcess(after=0.01))


@pytest.mark.usefixtures("patient")
def test_nobody_waits_in_a_turn_in_which_many_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placer_module, "WAIT_SECONDS_PER_TURN", 0.01)

    async def test(placing: Placing) -> None:
        await placing.get_ready()

        assert placing.placer(job(200)) is not None
        assert placing.placer(job(200)) is None
        assert (await placing.later())[1] is not None
        await asyncio.sleep(0)
        assert placing.placer(job(200)) is not None

    with_placing(test, InProcess(after=0.01))


def test_the_loop_turns_while_a_large_group_is_placed() -> None:
    async def test(placing: Placing) -> None:
        asked = job(SMALL)
        turns = 0
        assert placing.placer(asked) is None

        while placing.came.empty():
            turns += 1
            await asyncio.sleep(0.001)

        assert await placing.later() == (asked, asked.run())
        assert turns > 1

    with_placing(test, Solver())


@pytest.mark.usefixtures("patient")
def test_jobs_are_counted() -> None:
    async def test(placing: Placing) -> None:
        await placing.get_ready()

        placing.placer(job(200, "sticky"))
        placing.placer(job(SMALL, "sticky"))
        await placing.later()

        assert placing.placer.solved == {"sticky": 2}
        assert placing.placer.seconds["sticky"] > 0

    with_placing(test, InProcess())


def test_all_hear_that_the_process_is_ready() -> None:
    async def test(placing: Placing) -> None:
        assert not placing.placer.ready
        await asyncio.gather(placing.get_ready(), placing.get_ready())
        assert placing.placer.ready
        await placing.get_ready()

    with_placing(test, InProcess())


def test_a_process_that_cannot_be_started_keeps_nobody_waiting(caplog: pytest.LogCaptureFixture) -> None:
    async def test(placing: Placing) -> None:
        await placing.get_ready()
        asked = job(200)

        assert placing.placer(asked) is None
        assert await placing.later() == (asked, None)

    with caplog.at_level(logging.ERROR):
        with_placing(test, Solver(ABSENT))
    assert any("could not be started" in message for message in caplog.messages)


def test_an_assignor_that_fails_comes_to_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def test(placing: Placing) -> None:
        await placing.get_ready()
        asked = job(200, "nonsense")

        assert placing.placer(asked) is None
        assert await placing.later() == (asked, None)
        assert placing.placer.failed == {"nonsense": 1}

        placing.placer(job(SMALL))
        assert (await placing.later())[1] is not None

    with caplog.at_level(logging.ERROR):
        with_placing(test, Solver())
    assert "tasks could not be placed group='group' assignor=nonsense error=KeyError: 'nonsense'" in caplog.messages


def test_a_group_that_would_need_or_tools_is_placed_by_sticky() -> None:
    members = tuple(Member(f"m{number:02}") for number in range(12))
    uneven = Group((SubtopologyTasks("0", 1, 1), SubtopologyTasks("1", 4, 3)), members)

    async def test(placing: Placing) -> None:
        await placing.get_ready()
        placement = placing.placer(PlacementJob("group", 1, "optimal", uneven)) or (await placing.later())[1]
        assert placement == ASSIGNORS["sticky"](uneven)
        assert not placing.placer.failed

    without = "import sys; sys.modules.update(numpy=None, ortools=None)"
    with_placing(
        test, Solver((sys.executable, "-P", "-c", f"{without}; from kohort.broker.streams.solver import main; main()"))
    )


def test_the_broker_says_once_that_or_tools_is_missing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(placing: Placing) -> None:
        await placing.get_ready()
        placing.placer(job(200))
        placing.placer(job(200))

    with caplog.at_level(logging.INFO, "kohort.broker.streams"):
        with_placing(test, InProcess())
        assert not caplog.messages
        monkeypatch.setitem(sys.modules, "ortools", None)
        with_placing(test, InProcess())
    (message,) = caplog.messages
    assert message == (
        "OR-Tools isn't installed: streams groups are placed by sticky, small ones by optimal; "
        "pip install 'kohort[placement]'"
    )


def test_a_process_that_dies_comes_to_nothing() -> None:
    async def test(placing: Placing) -> None:
        asked = job(200)
        placing.placer(asked)

        assert await placing.later() == (asked, None)

    with_placing(test, Solver(MORTAL))


def test_a_process_that_died_is_started_again() -> None:
    solver = Solver()
    first = solver.solve("optimal", group(2))
    solver._process.kill()  # type: ignore[union-attr]
    solver._process.wait()  # type: ignore[union-attr]

    assert solver.solve("optimal", group(2)) == first
    solver.stop()


@pytest.mark.parametrize("members", [2, 10_000], ids=["reads but says nothing", "doesn't even read"])
def test_a_process_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch, members: int) -> None:
    monkeypatch.setattr(solver_module, "DEADLINE_SECONDS", 0.05)
    solver = Solver(SILENT)
    asked = Group((SubtopologyTasks("0", 2),), tuple(Member(f"m{number}") for number in range(members)))

    with pytest.raises(SolverError, match=r"longer than 0\.05 s"):
        solver.solve("optimal", asked)

    assert not solver.running


def test_others_are_placed_after_a_process_that_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = Solver(SILENT)
    with monkeypatch.context() as impatient:
        impatient.setattr(solver_module, "DEADLINE_SECONDS", 0.05)
        with pytest.raises(SolverError, match="longer"):
            solver.solve("optimal", group(2))

    solver._command = Solver()._command

    assert solver.solve("optimal", group(2)).active
    solver.stop()


def test_what_lies_where_the_broker_was_started_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pickle.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    solver = Solver()

    assert solver.solve("optimal", group(2)).active
    solver.stop()


def test_the_process_finds_the_package_where_the_broker_did() -> None:
    """It may be on the path because the application put it there; -S leaves out what is installed."""
    solver = Solver((sys.executable, "-S", "-P", "-m", "kohort.broker.streams.solver"))

    assert solver.solve("optimal", group(2)).active
    solver.stop()


def test_a_process_that_nobody_needs_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placer_module, "IDLE_SECONDS", 0.0)
    solver = Solver()

    async def test(placing: Placing) -> None:
        for _ in range(2):
            placing.placer(job(SMALL))
            assert (await placing.later())[1] is not None
            while solver.running:
                await asyncio.sleep(0.01)
        assert not placing.placer.ready

    with_placing(test, solver)


def test_the_process_ends_with_its_broker() -> None:
    solver = Solver()
    solver.solve("optimal", group(2))
    process = solver._process
    assert process is not None
    assert process.stdin is not None

    process.stdin.close()  # as it is when the broker was killed

    assert process.wait(30) == 0
    solver.stop()


def test_stopping_waits_for_nobody() -> None:
    solver = Solver(SILENT)
    began = time.monotonic()

    async def test(placing: Placing) -> None:
        placing.placer.start(pytest.fail)
        placing.placer(job(SMALL))
        while not solver.running:
            await asyncio.sleep(0.01)

    with_placing(test, solver)
    assert time.monotonic() - began < 20
    with pytest.raises(SolverError, match="the broker is stopping"):
        solver.solve("optimal", group(2))
