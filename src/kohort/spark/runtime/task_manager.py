"""The tasks that an instance has: opened, moved and closed as the group says, each by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, Final, Protocol

from kohort.client.errors import ClientError
from kohort.client.types import TopicPartition
from kohort.protocol.errors import KafkaError
from kohort.spark.errors import ApplicationError
from kohort.spark.runtime.activation import Activation
from kohort.spark.runtime.application_plan import ApplicationPlan
from kohort.spark.runtime.local_task import LocalTask, Phase
from kohort.spark.runtime.open_stores import OpenStores
from kohort.spark.runtime.subtopology_runner import SubtopologyRunner
from kohort.spark.runtime.wait_reasons import Reasons
from kohort.spark.state import StateError, Store
from kohort.streams.tasks import Role, TaskId

log = logging.getLogger(__name__)

_PAUSE_S: Final = 0.5


class Owner(Protocol):
    """What the instance is to its tasks."""

    @property
    def lanes(self) -> Mapping[str, SubtopologyRunner]:
        """Those that there are, by part."""

    def lane(self, part: str) -> SubtopologyRunner:
        """The lane of a part, which is made if need be."""

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Do something beside the rest; the application stops if that fails."""

    def fail(self, error: BaseException) -> None:
        """The application can't go on."""

    def tell_tasks(self) -> None:
        """The tasks have changed."""


class Member(Protocol):
    """The member of the group."""

    def closed(self, *tasks: TaskId) -> None:
        """These are closed."""


class Tailer(Protocol):
    """What keeps copies abreast: `kohort.spark.state.ChangelogReader`."""

    def follow(self, store: Store, partition: TopicPartition) -> None:
        """Keep a store abreast of its changelog."""

    async def unfollow(self, partition: TopicPartition) -> None:
        """Leave it alone."""


class TaskManager:
    """The tasks of an instance.

    What is to be done with a task waits for what was begun before, and that is given up if it can be: so a task that
    was to be opened, then copied, then closed is never opened and closed at a time.

    Args:
        owner: the instance.
        held: where its tasks are kept.
        member: told of tasks that are closed.
        blueprint: the application.
        stores: of the tasks.
        tailer: keeps copies abreast.
        taking: takes on active tasks.
        reasons: told why it waits.

    Attributes:
        held: the tasks.
        left: of tasks that it had: how far their stores here are, over all changelogs.
    """

    def __init__(
        self,
        owner: Owner,
        held: dict[TaskId, LocalTask],
        member: Member,
        blueprint: ApplicationPlan,
        stores: OpenStores,
        tailer: Tailer,
        taking: Activation,
        reasons: Reasons,
    ) -> None:
        self._owner, self._member, self._blueprint = owner, member, blueprint
        self._stores, self._tailer, self._taking, self._reasons = stores, tailer, taking, reasons
        self.held = held
        self.left: dict[TaskId, int] = {}

    # What the group says -----------------------------------------------------------------------------------------

    def assigned(self, tasks: Mapping[TaskId, Role]) -> None:
        """Take these on."""
        for task, role in tasks.items():
            held = self.held[task] = LocalTask(task, role)
            self._take(held) if role is Role.ACTIVE else self._copy(held)

    def revoked(self, tasks: Collection[TaskId]) -> None:
        """Give these up, when their epochs are committed."""
        for task in tasks:
            self._then(self.held[task], Phase.CLOSING, self._close, lost=False)

    def lost(self, tasks: Collection[TaskId]) -> None:
        """Give these up at once: they are others' already."""
        for part, lane in self._owner.lanes.items():
            self._owner.spawn(lane.lose([task for task in tasks if task.subtopology == part]), f"lose-{part}")
        for task in tasks:
            self._then(self.held[task], Phase.CLOSING, self._close, lost=True)

    def changed(self, roles: Mapping[TaskId, tuple[Role, Role]]) -> None:
        """Run what was a copy, or keep as a copy what ran."""
        for task, (before, after) in roles.items():
            held = self.held[task]
            held.role = after
            if after is Role.ACTIVE:
                self._take(held)
            elif before is Role.ACTIVE:
                self._then(held, Phase.CLOSING, self._demote)

    def reopen(self, tasks: Collection[TaskId]) -> None:
        """A lane has stopped some of its tasks: take those on anew that are still to run."""
        for task in tasks:
            held = self.held.get(task)
            if held is not None and held.phase is Phase.RUNNING:
                self._then(held, Phase.OPENING, self._open_anew)
        self._owner.tell_tasks()

    def opening(self, part: str) -> bool:
        """Whether any task of a part is being opened."""
        return any(each.phase is Phase.OPENING for each in self.held.values() if each.id.subtopology == part)

    # One thing after the other -----------------------------------------------------------------------------------

    def _take(self, held: LocalTask) -> None:
        self._then(held, Phase.OPENING, self._open)

    def _copy(self, held: LocalTask) -> None:
        self._then(held, Phase.COPY, self._begin_copy)

    def _then(
        self, held: LocalTask, phase: Phase, work: Callable[..., Coroutine[Any, Any, None]], **options: Any
    ) -> None:
        """Have something done with a task when what is being done with it is over; opening it is given up for that."""
        before = [each for each in held.works if not each.done()]
        if before and held.phase in (Phase.OPENING, Phase.COPY):
            before[-1].cancel()
        held.phase = phase

        async def after() -> None:
            if before:
                await asyncio.wait(before)
            await work(held, **options)

        held.works = [*before, self._owner.spawn(after(), f"{work.__name__.strip('_')}-{held.id}")]

    def _superseded(self, held: LocalTask) -> bool:
        """Whether something else is to be done with the task by now, which goes on from here."""
        return held.works[-1] is not asyncio.current_task()

    # What is done with a task ------------------------------------------------------------------------------------

    async def _open(self, held: LocalTask) -> None:
        """Take on an active task, again and again until that works."""
        waiting = self._reasons.of(f"task {held.id}")
        lane = self._owner.lane(held.id.subtopology)
        try:
            while True:
                try:
                    task = await self._taking.take(held.id, lane.committer.open)
                    break
                except Exception as caught:
                    error = _first(caught)
                    if isinstance(error, ApplicationError):
                        self._owner.fail(error)
                        return
                    if not isinstance(error, KafkaError | ClientError | StateError):
                        raise
                    waiting(f"task {held.id} can't be opened yet: {error}")
                await asyncio.sleep(_PAUSE_S)
        finally:
            waiting(None)
        held.phase = Phase.RUNNING
        lane.add(task)
        self._owner.tell_tasks()

    async def _open_anew(self, held: LocalTask) -> None:
        await self._leave_stores(held.id)
        await self._open(held)

    async def _begin_copy(self, held: LocalTask) -> None:
        """Have the task's stores follow their changelogs."""
        waiting = self._reasons.of(f"task {held.id}")
        try:
            while True:
                try:
                    stores = await self._stores.open(held.id)
                    break
                except StateError as error:
                    waiting(f"the state of task {held.id} can't be opened: {error}")
                    await asyncio.sleep(_PAUSE_S)
        finally:
            waiting(None)
        changelogs = self._blueprint.changelogs(held.id)
        for name, store in stores.items():
            self._tailer.follow(store, changelogs[name])
        self._owner.tell_tasks()

    async def _demote(self, held: LocalTask) -> None:
        """Run a task no more, and keep a copy of its state."""
        await self._stop_running(held, lost=False)
        if self._superseded(held):
            return
        held.phase = Phase.COPY
        self._member.closed(held.id)
        await self._begin_copy(held)

    async def _close(self, held: LocalTask, *, lost: bool) -> None:
        """Give a task up."""
        await self._stop_running(held, lost=lost)
        if self._superseded(held):
            return
        await self._leave_stores(held.id)
        if self._superseded(held):
            return
        del self.held[held.id]
        self._member.closed(held.id)
        self._owner.tell_tasks()

    async def _stop_running(self, held: LocalTask, *, lost: bool) -> None:
        lane = self._owner.lanes.get(held.id.subtopology)
        if lane is not None:
            await (lane.lose([held.id]) if lost else lane.drop([held.id]))

    async def _leave_stores(self, task: TaskId) -> None:
        for changelog in self._blueprint.changelogs(task).values():
            await self._tailer.unfollow(changelog)
        stand = await self._stores.close(task)
        if stand:
            self.left[task] = sum(stand.values())


def _first(error: BaseException) -> BaseException:
    """What happened first, of several things at a time."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
