"""Instances of the counting application in this process: coming, going, failing, and what they leave behind."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kohort.spark.errors import ApplicationError
from kohort.spark.monitoring.events import EpochDone, Listener, Restoring, TasksNow
from kohort.spark.runtime import instance as instance_module
from kohort.spark.runtime import task_offset_reporting
from kohort.spark.runtime.chain_runner import THREAD_NAME
from kohort.spark.runtime.instance import Instance
from kohort.spark.state import StateDirectory, StateDirectoryError
from kohort.streams.tasks import TaskId
from kohort.testing.broker import Broker
from tests.spark.runtime.counting import Counting, plan, settings
from tests.spark.runtime.faults import Instances
from tests.waiting import until


class Heard(Listener):
    """What an instance said."""

    def __init__(self) -> None:
        self.epochs: list[EpochDone] = []
        self.now: TasksNow | None = None
        self.restores: list[Restoring] = []
        self.failures: list[str] = []
        self.group_lag: int | None = None
        self.reasons: list[str | None] = []

    def waiting(self, reason: str | None) -> None:
        self.reasons.append(reason)

    def left(self, group_lag: int) -> None:
        self.group_lag = group_lag

    def epoch(self, done: EpochDone) -> None:
        self.epochs.append(done)

    def tasks(self, now: TasksNow) -> None:
        self.now = now

    def restoring(self, progress: Restoring) -> None:
        self.restores.append(progress)

    def failed(self, text: str) -> None:
        self.failures.append(text)

    def runs(self, count: int) -> bool:
        """Whether so many tasks run."""
        return self.now is not None and len(self.now.active) == count and not self.now.restoring


@asynccontextmanager
async def running(
    world: Instances, name: str, change: Callable[[Counting], None] = lambda jobs: None, **options: Any
) -> AsyncIterator[tuple[Instance, Heard, asyncio.Task[None]]]:
    """An instance, which is stopped at the end of the block."""
    made: list[Counting] = []

    def make(subtopology: str) -> Counting:
        jobs = Counting(subtopology, world.servers, lambda *asked: instance.lookup(*asked))
        made.append(jobs)
        change(jobs)
        return jobs

    heard = Heard()
    options = {"heartbeat_interval_ms": 100, "session_timeout_ms": 5_000, **options}
    instance = Instance(
        plan(world.app), settings(world.app, world.servers, world.home / name, **options), make, listener=heard
    )
    task = asyncio.create_task(instance.run())
    try:
        yield instance, heard, task
    finally:
        instance.stop()
        async with asyncio.timeout(30):
            await asyncio.wait([task])
        for jobs in made:
            jobs.close()


def with_instances(broker: Broker, home: Path, scenario: Callable[[Instances], Awaitable[None]]) -> None:
    """In an application of its own."""

    async def main() -> None:
        async with Instances(broker.bootstrap_servers, f"app-{uuid.uuid4().hex[:8]}", home) as world:
            await scenario(world)

    asyncio.run(main())


def test_it_comes_back_to_its_state_and_leaves_nothing_behind(
    kohort_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instance_module, "_ASK_LAG_MS", 60_000)

    async def scenario(world: Instances) -> None:
        before = {thread.name for thread in threading.enumerate()}
        async with world.feeding():
            async with running(world, "one") as (instance, heard, task):
                await until(lambda: {task[0] for done in heard.epochs for task in done.tasks} == {"0", "1"})
                assert any(thread.name.startswith(THREAD_NAME) for thread in threading.enumerate())
                with pytest.raises(StateDirectoryError, match="used by another process"):
                    Instance(plan(world.app), instance.settings, lambda subtopology: None)  # type: ignore[arg-type, return-value]
            await task
            assert heard.now is not None and heard.now.active == () and not heard.failures
            assert heard.group_lag is not None
        async with running(world, "one") as (_, heard, task):
            await world.counted()
            assert {each.task for each in heard.restores} == {"1_0", "1_1"}
        await task
        world.check()
        del instance
        gc.collect()
        after = {thread.name for thread in threading.enumerate()} - before
        assert not {name for name in after if name.startswith((THREAD_NAME, "kohort-globals", "kohort-range-reader"))}
        assert {each.get_name() for each in asyncio.all_tasks()} == {asyncio.current_task().get_name()}  # type: ignore[union-attr]

    with_instances(kohort_broker, tmp_path, scenario)


def test_the_lag_of_the_group_is_asked_for_after_a_good_end_only(
    kohort_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And when the state directory is free for the next instance."""
    free: list[bool] = []

    async def scenario(world: Instances) -> None:
        async def group_lag(*asked: object, **options: object) -> None:
            StateDirectory(world.home / "one", world.app).close()
            free.append(True)

        monkeypatch.setattr(instance_module, "group_lag", group_lag)
        async with running(world, "one") as (_, heard, task):
            await until(lambda: heard.runs(4))
            task.cancel()
        assert task.cancelled() and not free
        async with running(world, "one") as (_, heard, task):
            await until(lambda: heard.runs(4))
        await task
        assert free and heard.group_lag is None

    with_instances(kohort_broker, tmp_path, scenario)


def test_it_says_at_once_that_no_broker_answers(tmp_path: Path) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        heard = Heard()
        options = settings("alone", f"127.0.0.1:{port}", tmp_path)
        instance = Instance(plan("alone"), options, lambda _: None, listener=heard)  # type: ignore[arg-type, return-value]
        task = asyncio.create_task(instance.run())
        said = f"no broker answers at 127.0.0.1:{port}"
        await until(lambda: any(said in (each or "") for each in heard.reasons))
        task.cancel()
        await asyncio.wait([task])
        assert f"`kohort serve --ephemeral --listen 127.0.0.1:{port}` starts one here" in (heard.reasons[-1] or "")

    asyncio.run(main())


def test_a_second_one_comes_and_the_first_one_goes(kohort_broker: Broker, tmp_path: Path) -> None:
    async def scenario(world: Instances) -> None:
        async with world.feeding():
            async with running(world, "one", num_standby_replicas=1) as (_, first, one):
                await until(lambda: first.runs(4) and len(first.epochs) > 3)
                async with running(world, "two", num_standby_replicas=1) as (instance, second, two):
                    await until(lambda: first.runs(2) and second.runs(2))
                    await until(lambda: first.now is not None and len(first.now.standby) == 1)
                    await until(lambda: second.now is not None and len(second.now.standby) == 1)
                    (copy,) = (TaskId.parse(each) for each in second.now.standby)  # type: ignore[union-attr]
                    await until(
                        lambda: (
                            (store := instance.stores.get("counts", copy.partition)) is not None
                            and store.scan(limit=1).num_rows > 0
                        )
                    )
                    for listener in (first, second):
                        seen = len(listener.epochs)
                        await until(lambda seen=seen, listener=listener: len(listener.epochs) > seen + 2)  # type: ignore[misc]
                    first.epochs.clear()
                await until(lambda: first.runs(4))
            await one
            await two
        assert not first.failures and not second.failures
        async with running(world, "one") as _:
            await world.counted()
        world.check()

    with_instances(kohort_broker, tmp_path, scenario)


def test_it_stops_when_it_cannot_go_on(kohort_broker: Broker, tmp_path: Path) -> None:
    def broken(jobs: Counting) -> None:
        if jobs.subtopology == "0":
            jobs.failure = ValueError("a bug of the user's")

    async def scenario(world: Instances) -> None:
        async with world.feeding():
            async with running(world, "one", broken) as (_, heard, task):
                await until(task.done)
            with pytest.raises(ApplicationError, match=r"subtopology 0 failed 3 times in a row.*a bug of the user's"):
                task.result()
        assert heard.failures[-1].startswith("the application stops: subtopology 0 failed 3 times in a row")
        async with running(world, "one") as (_, heard, _):
            await world.counted()
        world.check()

    with_instances(kohort_broker, tmp_path, scenario)


def test_an_executor_that_fails_now_and_then(kohort_broker: Broker, tmp_path: Path) -> None:
    def shaky(jobs: Counting) -> None:
        jobs.every = 3

    async def scenario(world: Instances) -> None:
        async with world.feeding(), running(world, "one", shaky) as (_, heard, _):
            await until(lambda: len(heard.failures) > 3)
        async with running(world, "one") as (_, heard, _):
            await world.counted()
        world.check()

    with_instances(kohort_broker, tmp_path, scenario)


def test_cancelled_at_any_moment(kohort_broker: Broker, tmp_path: Path) -> None:
    """As by a second SIGINT: what it has open is aborted, or counts."""

    async def scenario(world: Instances) -> None:
        async with world.feeding():
            for number in range(5):
                async with running(world, "one") as (_, heard, task):
                    await until(lambda heard=heard: bool(heard.epochs))  # type: ignore[misc]
                    await asyncio.sleep(number * 0.03)
                    task.cancel()
                    await asyncio.wait([task])
        async with running(world, "one") as (_, heard, _):
            await world.counted()
        world.check()

    with_instances(kohort_broker, tmp_path, scenario)


def test_the_state_of_tasks_that_others_have_is_deleted_after_a_while(
    kohort_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_offset_reporting, "_LOOK_S", 0.1)

    async def scenario(world: Instances) -> None:
        async with world.feeding(), running(world, "one", state_cleanup_delay_ms=6_000) as (first, heard, _):
            await until(lambda: heard.runs(4) and len(heard.epochs) > 3)
            async with running(world, "two") as (_, other, _):
                await until(lambda: heard.runs(2) and other.runs(2))
                mine = {task for task in first.manager.tasks if task.subtopology == "1"}
                both = set(await asyncio.to_thread(first.directory.tasks_on_disk))
                gone = both - mine
                assert both > mine and set(first.manager.left) == gone
                await until(lambda: {TaskId.parse(each.name) for each in first.directory.path.glob("1_*")} == mine)
                await until(lambda: not first.manager.left)
            await until(lambda: heard.runs(4))
        async with running(world, "one") as _:
            await world.counted()
        world.check()

    with_instances(kohort_broker, tmp_path, scenario)
