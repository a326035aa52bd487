"""Tasks whose roles change before the last change is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.client.types import TopicPartition
from kohort.spark.runtime.active_task import ActiveTask
from kohort.spark.runtime.local_task import LocalTask, Phase
from kohort.spark.runtime.open_stores import OpenStores
from kohort.spark.runtime.task_manager import TaskManager
from kohort.spark.runtime.wait_reasons import Reasons
from kohort.spark.state import StateDirectory, Store
from kohort.streams.tasks import Role, TaskId
from tests.spark.runtime.counting import blueprint

TASK = TaskId("1", 0)


class _Lane:
    """Drops tasks when it is told that its epoch is over, and loses them at once."""

    def __init__(self) -> None:
        self.running: set[TaskId] = set()
        self.over = asyncio.Event()
        self.committer = SimpleNamespace(open=None)

    def add(self, task: ActiveTask) -> None:
        self.running.add(task.id)

    async def drop(self, tasks: list[TaskId]) -> None:
        self.running -= set(tasks)
        await self.over.wait()

    async def lose(self, tasks: list[TaskId]) -> None:
        self.running -= set(tasks)
        self.over.set()


class _World:
    """An instance, its member and all else that its tasks have to do with."""

    def __init__(self, directory: StateDirectory) -> None:
        self.the_lane = _Lane()
        self.lanes: Mapping[str, Any] = {"1": self.the_lane}
        self.works: set[asyncio.Task[None]] = set()
        self.failures: list[BaseException] = []
        self.told: set[TaskId] = set()
        self.follows: dict[TopicPartition, Store] = {}
        self.restored, self.unfollowed = asyncio.Event(), asyncio.Event()
        self.unfollowed.set()
        self.stores = OpenStores(blueprint("app"), directory)
        self.held: dict[TaskId, LocalTask] = {}
        self.tasks = TaskManager(
            self, self.held, self, blueprint("app"), self.stores, self, self, Reasons(lambda reason: None)  # type: ignore[arg-type]
        )  # fmt: skip

    def lane(self, part: str) -> Any:
        return self.lanes[part]

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self.works.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self.works.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures.append(error)

    def fail(self, error: BaseException) -> None:
        self.failures.append(error)

    def tell_tasks(self) -> None:
        """Nobody listens."""

    def closed(self, *tasks: TaskId) -> None:
        for task in tasks:
            assert task in self.told, f"{task} is closed twice"
            self.told.remove(task)

    def follow(self, store: Store, partition: TopicPartition) -> None:
        self.follows[partition] = store

    async def unfollow(self, partition: TopicPartition) -> None:
        self.follows.pop(partition, None)
        await self.unfollowed.wait()

    async def take(self, task: TaskId, open_producer: object) -> ActiveTask:
        stores = await self.stores.open(task)
        await self.restored.wait()
        return ActiveTask(task, stores, {})

    def assigned(self, role: Role = Role.ACTIVE) -> None:
        self.told.add(TASK)
        self.tasks.assigned({TASK: role})

    async def done(self) -> None:
        """All that was begun is over."""
        async with asyncio.timeout(10):
            while self.works:
                await asyncio.wait(self.works)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not holds():
                await asyncio.sleep(0.001)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[StateDirectory]:
    with StateDirectory(tmp_path, "app") as directory:
        yield directory


def test_a_task_that_is_lost_while_it_becomes_a_copy_is_closed_once(directory: StateDirectory) -> None:
    async def scenario() -> None:
        world = _World(directory)
        world.restored.set()
        world.assigned()
        await world.until(lambda: world.the_lane.running == {TASK})
        world.tasks.changed({TASK: (Role.ACTIVE, Role.STANDBY)})
        await asyncio.sleep(0.01)  # its epoch goes on
        world.tasks.lost([TASK])
        await world.until(lambda: not world.told)
        # It joins anew, and gets the task back at once.
        world.assigned()
        await world.done()
        assert not world.failures and world.held[TASK].phase is Phase.RUNNING and not world.follows
        assert not world.stores.of(TASK)["counts"].closed

    asyncio.run(scenario())


def test_a_task_that_is_revoked_and_then_lost_is_closed_once(directory: StateDirectory) -> None:
    async def scenario() -> None:
        world = _World(directory)
        world.restored.set()
        world.assigned()
        await world.until(lambda: world.the_lane.running == {TASK})
        world.tasks.revoked([TASK])
        await asyncio.sleep(0.01)
        world.tasks.lost([TASK])
        await world.until(lambda: not world.told)
        world.assigned()
        await world.done()
        assert not world.failures and world.held[TASK].phase is Phase.RUNNING

    asyncio.run(scenario())


def test_what_was_begun_first_is_waited_for_however_often_the_group_changes_its_mind(directory: StateDirectory) -> None:
    async def scenario() -> None:
        world = _World(directory)
        world.restored.set()
        world.unfollowed.clear()
        world.assigned()
        await world.until(lambda: world.the_lane.running == {TASK})
        world.tasks.reopen([TASK])  # waits for the tailer
        await asyncio.sleep(0.01)
        world.the_lane.over.set()
        world.tasks.changed({TASK: (Role.ACTIVE, Role.STANDBY)})
        world.tasks.changed({TASK: (Role.STANDBY, Role.ACTIVE)})
        world.tasks.revoked([TASK])
        await asyncio.sleep(0.01)
        world.unfollowed.set()
        await world.done()
        assert not world.failures and not world.told and not world.held
        assert not world.stores.of(TASK) and not world.follows
        directory.open_store(TASK, "counts").close()

    asyncio.run(scenario())


def test_stores_are_closed_whole_also_if_that_is_cancelled(
    directory: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        stores = OpenStores(
            SimpleNamespace(changelogs=lambda task: {name: TopicPartition(name, task.partition) for name in "abc"}),  # type: ignore[arg-type]
            directory,
        )
        opened = await stores.open(TASK)
        closing = asyncio.create_task(stores.close(TASK))
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        assert closing.cancelled() and all(store.closed for store in opened.values())
        assert set(await stores.open(TASK)) == set("abc")

    asyncio.run(scenario())
