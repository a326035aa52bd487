"""Does what the task manager wants done with tasks, and tells it what came of that; epochs: `epoch_interpreter`.

The only place where the decisions meet the world. At most one thing is under way for a task, and one for a
chain's epochs (`under_way`); what it comes to is an event for the task manager, which gives more effects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kohort.client.errors import ClientError
from kohort.client.streams_member import StreamsMember
from kohort.protocol.errors import KafkaError
from kohort.spark.runtime.activation import Activation
from kohort.spark.runtime.application_plan import ApplicationPlan
from kohort.spark.runtime.effects import Effect, ForTask
from kohort.spark.runtime.epoch_interpreter import EpochInterpreter
from kohort.spark.runtime.open_stores import OpenStores
from kohort.spark.runtime.task_manager import TaskManager
from kohort.spark.runtime.task_states import TaskEffect, TaskEvent
from kohort.spark.runtime.under_way import Outcome, UnderWay
from kohort.spark.state import ChangelogReader, StateError
from kohort.streams.tasks import TaskId

_PASSING: Final = (KafkaError, ClientError, StateError)
"""Errors after which a task is tried again; others are faults of the program."""


class Interpreter:
    """Does effects.

    Args:
        changed: called after each event: tasks, or reasons to wait, may have changed.
    """

    def __init__(
        self,
        plan: ApplicationPlan,
        manager: TaskManager,
        member: StreamsMember,
        stores: OpenStores,
        changelogs: ChangelogReader,
        activation: Activation,
        epochs: EpochInterpreter,
        under_way: UnderWay,
        *,
        changed: Callable[[], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._plan, self._manager, self._member = plan, manager, member
        self._stores, self._changelogs, self._activation = stores, changelogs, activation
        self._epochs, self._under_way = epochs, under_way
        self._changed, self._fail = changed, fail

    def do(self, effects: Iterable[Effect]) -> None:
        """Begin to do these. What they come to are events, later."""
        for effect in effects:
            if isinstance(effect, ForTask):
                self._for_task(effect)
            else:
                self._epochs.do(effect, self.do)
        self._changed()

    async def close(self) -> None:
        """Abort what is under way, and let go of everything."""
        await self._under_way.close()
        await self._epochs.close()

    def _for_task(self, effect: ForTask) -> None:
        task, operation, manager, begin = effect.task, effect.operation, self._manager, self._under_way.begin
        match effect.effect:
            case TaskEffect.RESTORE:
                work = self._activation.activate(task, self._epochs.runner(task.subtopology).committer.open)
                begin(task, work, lambda outcome: self._restored(effect, outcome), "restore")
            case TaskEffect.FOLLOW:
                begin(task, self._follow(task), lambda outcome: self._followed(effect, outcome), "follow")
            case TaskEffect.CANCEL:
                if (under_way := self._under_way.get(task)) is not None:
                    under_way.cancel()
            case TaskEffect.WAIT:
                due = lambda _: self.do(manager.task_happened(task, operation, TaskEvent.DUE))  # noqa: E731
                begin(task, asyncio.sleep(effect.seconds), due, "wait")
            case TaskEffect.CLOSE:
                begin(task, self._close(task), lambda outcome: self._closed(effect, outcome), "close")
            case TaskEffect.ACKNOWLEDGE:
                self._member.closed(task)

    def _restored(self, effect: ForTask, outcome: Outcome) -> None:
        if not self._failed(effect, outcome):
            self.do(self._manager.restored(effect.task, effect.operation, *outcome.result()))

    def _followed(self, effect: ForTask, outcome: Outcome) -> None:
        if not self._failed(effect, outcome):
            self.do(self._manager.task_happened(effect.task, effect.operation, TaskEvent.OPENED))

    def _failed(self, effect: ForTask, outcome: Outcome) -> bool:
        """Whether an effect was cancelled or failed; what that means is told."""
        if outcome.cancelled():
            self.do(self._manager.task_happened(effect.task, effect.operation, TaskEvent.CANCELLED))
            return True
        if (caught := outcome.exception()) is None:
            return False
        errors = list(_each(caught))
        error = next((each for each in errors if not isinstance(each, _PASSING)), errors[0])
        if not isinstance(error, _PASSING):
            self._fail(error)
        self.do(self._manager.task_happened(effect.task, effect.operation, TaskEvent.FAILED, str(error)))
        return True

    def _closed(self, effect: ForTask, outcome: Outcome) -> None:
        error = None if outcome.cancelled() else outcome.exception()
        if error is not None:
            self._fail(error)
        position = None if error is not None or outcome.cancelled() else outcome.result()
        self.do(self._manager.stores_closed(effect.task, effect.operation, position))

    async def _follow(self, task: TaskId) -> None:
        stores = await self._stores.open(task)
        changelogs = self._plan.changelogs(task)
        for name, store in stores.items():
            self._changelogs.follow(store, changelogs[name])

    async def _close(self, task: TaskId) -> int | None:
        """Close a task's stores; how far they are, over all changelogs."""
        for changelog in self._plan.changelogs(task).values():
            await self._changelogs.unfollow(changelog)
        positions = await self._stores.close(task)
        return sum(positions.values()) if positions else None


def _each(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group of them: several stores may fail at a time."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _each(each)
    else:
        yield error
