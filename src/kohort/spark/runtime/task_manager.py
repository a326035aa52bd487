"""The tasks of an instance: what the group wants, and what came of effects, turned into what is to be done next.

Pure: no I/O, no clock. Each call returns effects (`effects`), in order; the `interpreter`, which does them, tells what
came of them. Nothing else decides about tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from kohort.client.types import TopicPartition
from kohort.spark.epoch import EpochStatistics
from kohort.spark.program.committed_metadata import Fingerprint, NotedFormats
from kohort.spark.runtime.chain import chains_of
from kohort.spark.runtime.chain_epochs import ChainEpochs
from kohort.spark.runtime.clock_timers import NO_TIMERS, DueTimers
from kohort.spark.runtime.effects import Effect, ForTask
from kohort.spark.runtime.epoch_limit import LimitSettings
from kohort.spark.runtime.epoch_states import EpochEvent
from kohort.spark.runtime.local_task import LocalTask
from kohort.spark.runtime.subtopology_plan import SubtopologyPlan
from kohort.spark.runtime.task_states import RESTING, TRANSITIONS, TaskEffect, TaskEvent, TaskState
from kohort.streams.tasks import Role, TaskId

RETRY_S: Final = 0.5
"""How long after it failed opening or restoring a task is tried again."""


class TaskManager:
    """Moves the tasks of an instance, by the tables of `task_states` and `epoch_states`.

    Args:
        subtopologies: what each subtopology reads and writes, by id.
        program: the program's fingerprint.
        limits: how large epochs may be.

    Attributes:
        tasks: those that it has, until the group knows that they are given up.
        epochs: those of each subtopology, by id; the subtopologies of a chain share theirs.
        chains: the same, each once.
        left: of tasks that it had: how far their stores here are, over all changelogs.
        changes: how often tasks, or reasons to wait, have changed.
    """

    def __init__(
        self, subtopologies: Mapping[str, SubtopologyPlan], program: Fingerprint, limits: LimitSettings | None = None
    ) -> None:
        self.tasks: dict[TaskId, LocalTask] = {}
        self.left: dict[TaskId, int] = {}
        self._effects: list[Effect] = []
        self._events = 0
        self._moves = 0
        self._moved: set[str] = set()
        self._reasons: dict[str, tuple[int, str]] = {}
        self.chains = [
            ChainEpochs(chain, program, limits or LimitSettings(), self._move, self._effects)
            for chain in chains_of(subtopologies)
        ]
        self.epochs = {name: epochs for epochs in self.chains for name in epochs.chain.subtopologies}

    # What the group wants ----------------------------------------------------------------------------------------

    def assigned(self, tasks: Mapping[TaskId, Role]) -> list[Effect]:
        """Take these on."""
        for task_id, role in tasks.items():
            if task_id not in self.tasks:
                self.tasks[task_id] = self.epochs[task_id.subtopology].tasks[task_id] = LocalTask(task_id, role)
            self.tasks[task_id].owes_acknowledgement = False  # the group takes it for given up
            self._want(self.tasks[task_id], role)
        return self._done()

    def roles_changed(self, roles: Mapping[TaskId, tuple[Role, Role]]) -> list[Effect]:
        """Run what was a copy (promote it), or keep as a copy what ran (demote it)."""
        for task_id, (before, after) in roles.items():
            task = self.tasks[task_id]
            task.owes_acknowledgement |= before is Role.ACTIVE
            self._want(task, after)
        return self._done()

    def revoked(self, tasks: Collection[TaskId]) -> list[Effect]:
        """Give these up, when their epochs are committed."""
        for task_id in tasks:
            self.tasks[task_id].owes_acknowledgement = True
            self._want(self.tasks[task_id], None)
        return self._done()

    def lost(self) -> list[Effect]:
        """Give all tasks up at once: they are others' already. What is under way for them is aborted."""
        for task in list(self.tasks.values()):
            task.owes_acknowledgement = task.lost = True
            self._want(task, None)
        return self._done()

    # What came of effects ----------------------------------------------------------------------------------------

    def restored(
        self,
        task_id: TaskId,
        operation: int,
        positions: Mapping[TopicPartition, int],
        stream_time: int | None,
        until: Mapping[TopicPartition, int] | None = None,
        formats: Mapping[TopicPartition, NotedFormats | None] | None = None,
    ) -> list[Effect]:
        """A task's stores are restored, and it reads on there."""
        task = self._at(task_id, operation)
        if task is not None:
            task.positions, task.stream_time, task.until = dict(positions), stream_time, dict(until or {})
            task.formats = dict(formats or {})
            self.epochs[task_id.subtopology].restored(task)
            self._move(task, TaskEvent.RESTORED)
        return self._done()

    def task_happened(self, task_id: TaskId, operation: int, event: TaskEvent, why: str | None = None) -> list[Effect]:
        """What came of another effect for a task. `why`: what went wrong."""
        task = self._at(task_id, operation)
        if task is not None:
            if why is not None and task.why is None:
                task.why_since = self._number()
            task.why = why if why is not None else task.why
            self._move(task, event)
        return self._done()

    def stores_closed(self, task_id: TaskId, operation: int, position: int | None) -> list[Effect]:
        """A task's stores are closed; `position` is how far they are, over all changelogs, if it has any."""
        if position is not None:
            self.left[task_id] = position
        return self.task_happened(task_id, operation, TaskEvent.STORES_CLOSED)

    def looked(
        self,
        chain: str,
        operation: int,
        ends: Mapping[TopicPartition, int],
        written: Mapping[TopicPartition, int],
        partitions: Mapping[str, int],
        now: float,
        due: DueTimers = NO_TIMERS,
    ) -> list[Effect]:
        """Where a chain's inputs end; see `ChainEpochs.looked`."""
        epochs = self.epochs[chain]
        if operation == epochs.operation:
            epochs.looked(ends, written, partitions, now, self._number(), due)
        return self._done()

    def job_done(self, chain: str, operation: int, statistics: EpochStatistics) -> list[Effect]:
        """An epoch's job is done."""
        if operation == self.epochs[chain].operation:
            self.epochs[chain].job_done(statistics)
        return self._done()

    def stored(self, chain: str, operation: int, took_ms: float) -> list[Effect]:
        """An epoch is in the stores, too."""
        if operation == self.epochs[chain].operation:
            self.epochs[chain].stored(took_ms)
        return self._done()

    def epoch_happened(self, chain: str, operation: int, event: EpochEvent, why: str | None = None) -> list[Effect]:
        """What came of another effect for an epoch. `why`: what went wrong."""
        if operation == self.epochs[chain].operation:
            self.epochs[chain].happened(event, why, self._number())
        return self._done()

    # What is known -----------------------------------------------------------------------------------------------

    @property
    def changes(self) -> int:
        return self._moves + sum(each.changes for each in self.chains)

    def state_removed(self, task_id: TaskId) -> None:
        """The state of a task that it had is deleted."""
        self.left.pop(task_id, None)

    def says(self, source: str, reason: str | None) -> None:
        """Something beside the tasks has to wait, or goes on (None): the changelogs' reader, global tables, …"""
        self._moves += 1
        if reason is None:
            self._reasons.pop(source, None)
        else:
            since = self._reasons[source][0] if source in self._reasons else self._number()
            self._reasons[source] = since, reason

    @property
    def reason(self) -> str | None:
        """Why something doesn't get on: of all reasons the one that has held the longest. None if all goes on."""
        reasons = [*self._reasons.values()]
        reasons += [(task.why_since, task.reason) for task in self.tasks.values() if task.reason is not None]
        reasons += [(each.why_since, each.why) for each in self.chains if each.why is not None]
        return min(reasons)[1] if reasons else None

    @property
    def stopped(self) -> dict[str, str]:
        """Why the application stops, by subtopology."""
        return {each.stopped_in: each.stopped for each in self.chains if each.stopped is not None}

    def positions(self) -> dict[TopicPartition, int]:
        """Where the tasks that run read on."""
        return {partition: at for each in self.chains for partition, at in each.positions().items()}

    # Moves -------------------------------------------------------------------------------------------------------

    def _want(self, task: LocalTask, role: Role | None) -> None:
        self._moves += 1
        task.wanted = role
        if role is not None:
            task.lost = False
        self._move(task, task.wish)

    def _move(self, task: LocalTask, event: TaskEvent) -> None:
        found = TRANSITIONS.get((task.state, event))
        if found is None:
            return
        effects, task.state = found
        self._moves += 1
        self._moved.add(task.id.subtopology)
        if task.state in (TaskState.RUNNING, TaskState.FOLLOWING):
            task.why = None
        if task.state is TaskState.FOLLOWING:
            task.failures = 0  # others go on with what failed here
        if task.state in (TaskState.CREATED, TaskState.SUSPENDED, TaskState.CLOSING):
            task.positions, task.until = {}, {}
        for effect in effects:
            self._emit(task, effect)
        if task.state is TaskState.CLOSED:
            del self.tasks[task.id], self.epochs[task.id.subtopology].tasks[task.id]
        stopped = self.epochs[task.id.subtopology].stopped is not None
        if task.state in RESTING and not (stopped and task.wish is TaskEvent.WANT_ACTIVE):
            self._move(task, task.wish)

    def _emit(self, task: LocalTask, effect: TaskEffect) -> None:
        if effect is TaskEffect.ABORT_EPOCH:
            self.epochs[task.id.subtopology].happened(EpochEvent.LOST)
            return
        if effect is TaskEffect.ACKNOWLEDGE:
            if not task.owes_acknowledgement:
                return
            task.owes_acknowledgement = False
        elif effect is not TaskEffect.CANCEL:
            task.operation = self._number()
        self._effects.append(
            ForTask(effect, task.id, task.operation, seconds=RETRY_S if effect is TaskEffect.WAIT else 0.0)
        )

    def _at(self, task_id: TaskId, operation: int) -> LocalTask | None:
        task = self.tasks.get(task_id)
        return task if task is not None and task.operation == operation else None

    def _number(self) -> int:
        self._events += 1
        return self._events

    def _done(self) -> list[Effect]:
        while self._moved:
            self.epochs[self._moved.pop()].tasks_moved()
        effects = self._effects[:]
        self._effects.clear()
        return effects
