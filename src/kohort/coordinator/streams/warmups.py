"""The way from what members hold to the target assignment: no task stops for want of its state.

An assignor says where tasks are to be in the end. A stateful task that moves to where its state isn't would stand
still until the state is restored, so it stays for the time being with whoever has the state, its keeper, while the
member that is to have it warms up. The keeper is the present owner, or, where that is gone, somebody with a copy that
is caught up.

    keeper   the process of the target member         what happens
    -------  ---------------------------------------  ----------------------------------------------------
    none     has the state or not                     the target member runs the task
    any      is the keeper's as well                  the task moves at once: the state is on the same disk
    any      is of a client that reports no offsets   the task moves at once: nobody would ever know more
    any      has a copy that is caught up             the task moves at once
    any      has a standby that lags                  it stays a standby until it is caught up
    any      has nothing, or old state on its disk    the target member warms up, or waits until a slot is free

The target assignment never puts two copies of a task in one process, and neither does what comes out here: a standby
of the target waits while its process has the keeper. A standby that the group has already stays in its place, so that
a crash finds as many copies as before.

Slots are counted in the whole group, and a warm-up has its slot until the member has let go of it. So with as many
slots as `num.warmup.replicas` there are never more warm-ups than that, though members let go in their own time.
Whoever has a slot keeps it while the task needs it; a free one goes to the task with the least lag.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kohort.streams.task_offsets import TaskOffsets
from kohort.streams.tasks import Role, TaskId

__all__ = ["Holder", "Refined", "refine"]


@dataclass(frozen=True, slots=True)
class Holder:
    """A member as it is now.

    Attributes:
        process: the process it runs in.
        tasks: what it is assigned.
        releasing: what it was told to give up and hasn't yet. It won't get that back: the decision is made.
    """

    process: str
    tasks: Mapping[TaskId, Role]
    releasing: Mapping[TaskId, Role] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refined:
    """What members are to be reconciled to now.

    Attributes:
        tasks: what each member is to have; the very mapping of the target where nothing differs.
        moving: tasks that aren't yet to go where the target has them. Without any, `tasks` is the target.
    """

    tasks: Mapping[str, Mapping[TaskId, Role]]
    moving: frozenset[TaskId] = frozenset()


def refine(
    target: Mapping[str, Mapping[TaskId, Role]],
    members: Mapping[str, Holder],
    offsets: TaskOffsets,
    stateful: Collection[str],
    warmup_replicas: int,
    acceptable_lag: int,
) -> Refined:
    """What members are to have now, on the way to the target.

    To be asked again when the target changes, when a member comes, goes, gets tasks or lets go of them, and when one
    reports offsets while tasks are moving. Where members do as they are told, every answer either is the target or
    waits for somebody to restore state.

    Args:
        target: active and standby tasks of each member. Where a member has left, its tasks stay where they are.
        members: the members that there are.
        offsets: what they report.
        stateful: ids of the subtopologies that have state.
        warmup_replicas: most warm-ups at a time in the group; with 0, tasks move at once.
        acceptable_lag: records that a copy may lag behind and still take over.
    """
    wanted = {name: target.get(name, {}) for name in members}
    if warmup_replicas <= 0 or not stateful:
        return Refined(wanted)
    refiner = _Refiner(members, offsets, acceptable_lag)
    moves = [
        _Move(task, name if name in members else None, keeper)
        for name, tasks in target.items()
        for task, role in tasks.items()
        if role is Role.ACTIVE and (keeper := refiner.keeper(task, name, stateful)) is not None
    ]
    if not moves:
        return Refined(wanted)
    standbys: dict[TaskId, list[str]] = {move.task: [] for move in moves}
    for name, tasks in wanted.items():
        for task, role in tasks.items():
            if role is Role.STANDBY and task in standbys:
                standbys[task].append(name)
    changed = _Changes(wanted)
    for move in moves:
        refiner.stay(move, standbys[move.task], changed)
    for task, name in refiner.warm_up(moves, warmup_replicas):
        changed.give(name, task, Role.WARMUP)
    return Refined(changed.tasks, frozenset(move.task for move in moves))


@dataclass(frozen=True, slots=True)
class _Move:
    """A task that can't yet go where the target has it.

    Attributes:
        task: the task.
        wanting: who is to have it in the end; None if that member has left.
        keeper: who runs it now.
    """

    task: TaskId
    wanting: str | None
    keeper: str


class _Changes:
    """A copy of an assignment, made where it changes.

    Attributes:
        tasks: what each member is to have.
    """

    def __init__(self, tasks: Mapping[str, Mapping[TaskId, Role]]) -> None:
        self.tasks = dict(tasks)
        self._copied: dict[str, dict[TaskId, Role]] = {}

    def give(self, name: str, task: TaskId, role: Role | None) -> None:
        """A member is to have a task in this role; None for not at all."""
        tasks = self._copied.get(name)
        if tasks is None:
            tasks = self._copied[name] = dict(self.tasks[name])
            self.tasks[name] = tasks
        if role is None:
            tasks.pop(task, None)
        else:
            tasks[task] = role


class _Refiner:
    """Who has what, and how much of it."""

    def __init__(self, members: Mapping[str, Holder], offsets: TaskOffsets, acceptable_lag: int) -> None:
        self._members = members
        self._offsets = offsets
        self._acceptable_lag = acceptable_lag
        self._owners: dict[TaskId, str] = {}
        self._copies: dict[TaskId, list[str]] = {}
        self._held_slots = 0
        for name, member in sorted(members.items()):
            for task, role in member.tasks.items():
                if role is Role.ACTIVE:
                    self._owners[task] = name
                else:
                    self._copies.setdefault(task, []).append(name)
            for roles in (member.tasks, member.releasing):
                self._held_slots += sum(role is Role.WARMUP for role in roles.values())

    def keeper(self, task: TaskId, wanting: str, stateful: Collection[str]) -> str | None:
        """Who runs a task that can't go to the member that the target gives it; None if it can."""
        owner = self._owners.get(task)
        if owner == wanting:
            return None
        if wanting not in self._members:
            return owner or self._caught_up_copy(task)
        if task.subtopology not in stateful:
            return None
        restores = self._copy_beside(task, wanting) or wanting
        if not self._offsets.reports(wanting) or not self._offsets.reports(restores):
            return None
        keeper = owner or self._caught_up_copy(task)
        if keeper is None or self._process(keeper) == self._process(wanting) or self._caught_up(task, wanting):
            return None
        return keeper

    def stay(self, move: _Move, standbys: Collection[str], changed: _Changes) -> None:
        """Leave a task with its keeper, and as many standbys as the target has, where there is room for them."""
        task, taken = move.task, {self._process(move.keeper)}
        if move.wanting is not None:
            changed.give(move.wanting, task, None)
            taken.add(self._process(move.wanting))
            copy = self._copy_beside(task, move.wanting)
            if copy is not None and self._members[copy].tasks[task] is Role.STANDBY:
                changed.give(copy, task, Role.STANDBY)
        waiting = [name for name in standbys if self._process(name) in taken]
        for name in waiting:
            changed.give(name, task, None)
        changed.give(move.keeper, task, Role.ACTIVE)
        taken.update(self._process(name) for name in standbys)
        for name in self._copies.get(task, ()):
            if waiting and self._process(name) not in taken and self._members[name].tasks[task] is Role.STANDBY:
                changed.give(name, task, Role.STANDBY)
                taken.add(self._process(name))
                waiting.pop()

    def warm_up(self, moves: Collection[_Move], slots: int) -> list[tuple[TaskId, str]]:
        """Which members warm up which tasks: who does already, then others as far as there are slots."""
        begun: list[tuple[TaskId, str]] = []
        others: list[tuple[TaskId, str]] = []
        for move in moves:
            if move.wanting is None:
                continue
            copy = self._copy_beside(move.task, move.wanting)
            if copy is None:
                others.append((move.task, move.wanting))
            elif self._members[copy].tasks[move.task] is Role.WARMUP:
                begun.append((move.task, copy))
        begun.sort(key=self._urgency)
        others.sort(key=self._urgency)
        return begun[:slots] + others[: max(slots - self._held_slots, 0)]

    def _caught_up_copy(self, task: TaskId) -> str | None:
        return next((name for name in self._copies.get(task, ()) if self._caught_up(task, name)), None)

    def _copy_beside(self, task: TaskId, name: str) -> str | None:
        """Who in a member's process has a copy of a task."""
        copies = self._copies.get(task, ())
        return next((copy for copy in copies if self._process(copy) == self._process(name)), None)

    def _caught_up(self, task: TaskId, name: str) -> bool:
        lag = self._lag(task, name)
        return lag is not None and lag <= self._acceptable_lag

    def _urgency(self, warmup: tuple[TaskId, str]) -> tuple[bool, int, TaskId]:
        lag = self._lag(*warmup)
        return lag is None, lag or 0, warmup[0]

    def _lag(self, task: TaskId, name: str) -> int | None:
        return self._offsets.lag(task, self._process(name), self._tails)

    def _tails(self, name: str, task: TaskId) -> bool:
        return name in self._members and task in self._members[name].tasks

    def _process(self, name: str) -> str:
        return self._members[name].process
