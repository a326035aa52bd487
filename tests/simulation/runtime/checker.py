"""What must hold after every step of an instance.

- A task that isn't for the group to move stays as it is when another moves: nothing is done with it, and its epoch
  goes on. It leaves RUNNING or its epoch only if it is revoked, demoted or lost itself, or an epoch of its own failed.
- Nothing waits without a reason: a task that neither runs nor follows has an effect under way, or is in an epoch that
  has; and so do the epochs of running tasks. What is tried again says why.
- Effects are what is under way: their operation is the task's, or the epochs'.
- A task runs or follows only if the group wants it to.
- A task that runs reads on from what is committed; an acknowledgement is owed only until it can be given.
- The application stops only if an epoch failed three times in a row.
- Stores that are open are those of tasks that the instance has.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kohort.client.streams.events import Assigned, Lost, Revoked, RolesChanged
from kohort.spark.runtime.effects import Effect, Epoch, ForEpochs, ForTask
from kohort.spark.runtime.epoch_states import EpochEffect, EpochState
from kohort.spark.runtime.task_states import RESTING, TaskState
from kohort.streams.tasks import Role, TaskId
from tests.simulation.books import InvariantError

if TYPE_CHECKING:
    from tests.simulation.runtime.instance import Instance

ATTEMPTS = 3

_AT_WORK = frozenset({TaskState.RUNNING, TaskState.IN_EPOCH, TaskState.COMMITTING})
_WANTED = frozenset({TaskState.RUNNING, TaskState.FOLLOWING})
_IN_EPOCH = frozenset({TaskState.IN_EPOCH, TaskState.COMMITTING, TaskState.SUSPENDING, TaskState.ABORTING})
_OPERATIONS = frozenset(
    {TaskState.OPENING, TaskState.RESTORING, TaskState.CANCELLING, TaskState.RETRYING, TaskState.CLOSING}
)
_EPOCH = frozenset({EpochState.IN_JOB, EpochState.SENDING, EpochState.COMMITTING, EpochState.STORING})
_MUST_SAY_WHY = frozenset({EpochState.RETRYING, EpochState.RESTARTING, EpochState.BACKING_OFF})
_FAILURES = frozenset({EpochEffect.ABORT, EpochEffect.CLOSE_PRODUCER})
_HARMLESS = frozenset({EpochEffect.PAUSE, EpochEffect.GATHER, EpochEffect.LOOK, EpochEffect.CLOSE_PRODUCER})

Before = tuple[dict[TaskId, TaskState], dict[str, EpochState]]


class Checker:
    """Watches an instance."""

    def __init__(self, instance: Instance) -> None:
        self._instance, self._manager = instance, instance.manager
        self._failures: Counter[TaskId] = Counter()

    def before(self) -> Before:
        """How far everything is."""
        manager = self._manager
        return (
            {task.id: task.state for task in manager.tasks.values()},
            {epochs.chain.id: epochs.state for epochs in manager.chains},
        )

    def decided(self, cause: object, before: Before, effects: list[Effect]) -> None:
        """The manager has decided."""
        if isinstance(cause, Assigned | Revoked | Lost | RolesChanged):
            self._check_stayers(cause, before, effects)
        for effect in effects:
            if effect.effect is EpochEffect.ABORT and not isinstance(cause, Lost):
                self._fail("stays", f"an epoch is aborted, because of {cause}")
        tasks, _ = before
        for task_id, state in tasks.items():
            task = self._manager.tasks.get(task_id)
            if task is None or state not in _AT_WORK or task.state in _AT_WORK:
                continue
            given_up = task.wanted is not Role.ACTIVE
            stopped = self._manager.epochs[task_id.subtopology].stopped is not None
            failed = isinstance(cause, ForEpochs) and (cause.effect in _FAILURES or stopped)
            if not given_up and not failed:
                self._fail("stays", f"{task_id} is {task.state.name} after {state.name}, because of {cause}")

    def _check_stayers(
        self, cause: Assigned | Revoked | Lost | RolesChanged, before: Before, effects: list[Effect]
    ) -> None:
        """The group has moved some tasks: nothing happens to the others."""
        moved = set(cause.tasks)
        tasks, epochs = before
        for effect in effects:
            if isinstance(effect, ForTask) and effect.task not in moved:
                self._fail("stays", f"{effect}, because of {cause}")
            if isinstance(effect, ForEpochs) and effect.effect in _FAILURES and not isinstance(cause, Lost):
                self._fail("stays", f"{effect}, because of {cause}")
        for task_id, state in tasks.items():
            if task_id not in moved and self._manager.tasks[task_id].state is not state:
                self._fail("stays", f"{task_id} was {state.name}, because of {cause}")
        for name, was in epochs.items():
            if was in _EPOCH and self._manager.epochs[name].state is not was and not isinstance(cause, Lost):
                self._fail("stays", f"the epoch of {name} was {was.name}, because of {cause}")

    def idle_for_a_reason(self) -> None:
        """Whatever doesn't run has something under way."""
        manager, under_way = self._manager, self._instance.interpreter.under_way
        if self._instance.closing:
            return
        for task_id, task in manager.tasks.items():
            state, epochs = task.state, manager.epochs[task_id.subtopology]
            if state in _OPERATIONS:
                effect = under_way.get(task_id)
                if effect is None or effect[0].operation != task.operation:
                    self._fail("nothing waits", f"{task} has {effect} under way")
            elif task_id in under_way:
                self._fail("nothing waits", f"{task}: nobody waits for {under_way[task_id][0]}")
            if state in _IN_EPOCH and (epochs.epoch is None or task_id not in epochs.epoch.plan.all_tasks):
                self._fail("nothing waits", f"{task} is in no epoch: {epochs.state.name}")
            if state in RESTING and epochs.stopped is None:
                self._fail("nothing waits", f"{task} rests")
            if state is TaskState.RETRYING and (task.why is None or manager.reason is None):
                self._fail("says why", f"{task}")
            if task.wanted is None and not task.owes_acknowledgement:
                self._fail("nothing waits", f"{task} goes, and the group won't hear of it")
            if state in _WANTED and (
                task.wanted is None or (task.wanted is Role.ACTIVE) != (state is TaskState.RUNNING)
            ):
                self._fail("does as the group wants", f"{task}")
            if state is TaskState.FOLLOWING and task.owes_acknowledgement:
                self._fail("acknowledged in time", f"{task}")
            for partition, position in task.positions.items():
                if position > (committed := self._instance.cluster.oracle.offsets.get(partition, 0)):
                    self._fail("counted once", f"{task} has read {partition} to {position}, committed is {committed}")
        for epochs in manager.chains:
            name = epochs.chain.id
            effect = under_way.get(name)
            if epochs.state in (EpochState.IDLE, EpochState.STOPPED):
                if effect is not None and effect[0].effect not in _HARMLESS:
                    self._fail("nothing waits", f"{name} is {epochs.state.name}: nobody waits for {effect[0]}")
                if epochs.state is EpochState.IDLE and epochs.running:
                    self._fail("nothing waits", f"{epochs.running} run, and subtopology {name} is idle")
            elif effect is None or effect[0].operation != epochs.operation:
                self._fail("nothing waits", f"subtopology {name} is {epochs.state.name}, under way is {effect}")
            if epochs.state in _MUST_SAY_WHY and manager.reason is None:
                self._fail("says why", f"subtopology {name} is {epochs.state.name}")
        if strange := self._instance.disk.open.keys() - manager.tasks.keys():
            self._fail("stores in turn", f"the stores of {strange} are open")

    def epoch_over(self, epoch: Epoch, *, failed: bool) -> None:
        """An epoch is stored, or has failed."""
        for task in epoch.plan.tasks:
            self._failures[task] = self._failures[task] + 1 if failed else 0

    def stops(self, why: str) -> None:
        """The application stops."""
        if "times in a row" in why and max(self._failures.values(), default=0) < ATTEMPTS:
            self._fail("stops for a reason", f"{why}, and there were {dict(self._failures)}")

    def acknowledged(self, task_id: TaskId) -> None:
        """A task is given up: others may have it now."""
        task = self._manager.tasks.get(task_id)
        if task is not None and task.state in _AT_WORK | _IN_EPOCH:
            self._fail("acknowledged early", f"{task}")

    def _fail(self, what: str, detail: str) -> None:
        raise InvariantError(f"{what}: {self._instance}: {detail}")
