"""Warm-ups: refines a target assignment so that no stateful task stops while its state is restored elsewhere.

An assignor says where tasks are to be in the end. A stateful task that moves to a process without its state would stop
until the state is restored. So it stays with an interim owner that has the state, while the target member warms up. The
interim owner is the present owner or, where that has left, a member with a copy that has caught up.

    interim owner  process of the target member         what happens
    -------------  -----------------------------------  ----------------------------------------------------
    none           has the state or not                 the target member runs the task
    any            is that of the interim owner         the task moves at once: the state is on the same disk
    any            is of a client without task offsets  the task moves at once: the lag will never be known
    any            has a copy that has caught up        the task moves at once
    any            has a standby that lags              it stays a standby until it has caught up
    any            has nothing, or old state on disk    the target member warms up, or waits until a slot is free

The target assignment never puts two copies of a task in one process, nor does the refined one: a standby of the target
waits while its process has the interim owner. A standby that exists already stays in its place, so that as many copies
as before survive a crash.

Slots are counted in the whole group, and a warm-up has its slot until its member has revoked it. So there are never
more warm-ups than `num.warmup.replicas`, though members take their time to revoke them. A warm-up keeps its slot while
the task needs it; a free slot goes to the task with the least lag.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kohort.streams.task_offsets import TaskOffsets
from kohort.streams.tasks import Role, TaskId


@dataclass(frozen=True, slots=True)
class CurrentMember:
    """A member as it is now.

    Attributes:
        revoking: tasks that it hasn't confirmed to have revoked. It won't get them back.
    """

    process: str
    tasks: Mapping[TaskId, Role]
    revoking: Mapping[TaskId, Role] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refined:
    """A refined target assignment, to which members are reconciled.

    Attributes:
        tasks: the tasks of each member; the very mapping of the target where nothing differs.
        moving: tasks that can't go to their target member yet. Without any, `tasks` is the target.
    """

    tasks: Mapping[str, Mapping[TaskId, Role]]
    moving: frozenset[TaskId] = frozenset()


def refine(
    target: Mapping[str, Mapping[TaskId, Role]],
    members: Mapping[str, CurrentMember],
    offsets: TaskOffsets,
    stateful: Collection[str],
    warmup_replicas: int,
    acceptable_lag: int,
) -> Refined:
    """Returns the tasks of each member on the way to the target.

    Call it again when the target changes, when a member joins, leaves, gets or revokes tasks, and when one reports
    offsets while tasks are moving. As long as members follow it, each result either is the target or waits until state
    is restored.

    Args:
        target: active and standby tasks of each member. Where a member has left, its tasks stay where they are.
        stateful: ids of the subtopologies that have state.
        warmup_replicas: `num.warmup.replicas`: most warm-ups at a time in the group; with 0, tasks move at once.
        acceptable_lag: `acceptable.recovery.lag`: records that a copy may lag behind and still take over.
    """
    wanted = {name: target.get(name, {}) for name in members}
    if warmup_replicas <= 0 or not stateful:
        return Refined(wanted)
    refiner = _Refiner(members, offsets, acceptable_lag)
    moves = [
        _Move(task, name if name in members else None, interim_owner)
        for name, tasks in target.items()
        for task, role in tasks.items()
        if role is Role.ACTIVE and (interim_owner := refiner.interim_owner(task, name, stateful)) is not None
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
        refiner.keep_with_interim_owner(move, standbys[move.task], changed)
    for task, name in refiner.warm_up(moves, warmup_replicas):
        changed.give(name, task, Role.WARMUP)
    return Refined(changed.tasks, frozenset(move.task for move in moves))


@dataclass(frozen=True, slots=True)
class _Move:
    """A task that can't go to its target member yet.

    Attributes:
        target_member: the member that is to run it in the end; None if that has left.
        interim_owner: the member that runs it until then.
    """

    task: TaskId
    target_member: str | None
    interim_owner: str


class _Changes:
    """An assignment, copied where it changes."""

    def __init__(self, tasks: Mapping[str, Mapping[TaskId, Role]]) -> None:
        self.tasks = dict(tasks)
        self._own_copies: dict[str, dict[TaskId, Role]] = {}

    def give(self, name: str, task: TaskId, role: Role | None) -> None:
        """Gives a member a task in this role; None takes it away."""
        tasks = self._own_copies.get(name)
        if tasks is None:
            tasks = self._own_copies[name] = dict(self.tasks[name])
            self.tasks[name] = tasks
        if role is None:
            tasks.pop(task, None)
        else:
            tasks[task] = role


class _Refiner:
    """Finds interim owners and warm-ups: knows the owners and copies of each task."""

    def __init__(self, members: Mapping[str, CurrentMember], offsets: TaskOffsets, acceptable_lag: int) -> None:
        self._members = members
        self._offsets = offsets
        self._acceptable_lag = acceptable_lag
        self._owners: dict[TaskId, str] = {}
        self._copies: dict[TaskId, list[str]] = {}
        self._used_slots = 0
        for name, member in sorted(members.items()):
            for task, role in member.tasks.items():
                if role is Role.ACTIVE:
                    self._owners[task] = name
                else:
                    self._copies.setdefault(task, []).append(name)
            for roles in (member.tasks, member.revoking):
                self._used_slots += sum(role is Role.WARMUP for role in roles.values())

    def interim_owner(self, task: TaskId, target_member: str, stateful: Collection[str]) -> str | None:
        """Returns the interim owner of a task that can't go to its target member yet; None if it can."""
        owner = self._owners.get(task)
        if owner == target_member:
            return None
        if target_member not in self._members:
            return owner or self._caught_up_copy(task)
        if task.subtopology not in stateful:
            return None
        restoring = self._copy_beside(task, target_member) or target_member
        if not self._offsets.reports(target_member) or not self._offsets.reports(restoring):
            return None
        interim_owner = owner or self._caught_up_copy(task)
        if (
            interim_owner is None
            or self._process(interim_owner) == self._process(target_member)
            or self._caught_up(task, target_member)
        ):
            return None
        return interim_owner

    def keep_with_interim_owner(self, move: _Move, standbys: Collection[str], changed: _Changes) -> None:
        """Leaves a task with its interim owner, and as many standbys as the target has, where processes are free."""
        task, occupied = move.task, {self._process(move.interim_owner)}
        if move.target_member is not None:
            changed.give(move.target_member, task, None)
            occupied.add(self._process(move.target_member))
            copy = self._copy_beside(task, move.target_member)
            if copy is not None and self._members[copy].tasks[task] is Role.STANDBY:
                changed.give(copy, task, Role.STANDBY)
        postponed = [name for name in standbys if self._process(name) in occupied]
        for name in postponed:
            changed.give(name, task, None)
        changed.give(move.interim_owner, task, Role.ACTIVE)
        occupied.update(self._process(name) for name in standbys)
        for name in self._copies.get(task, ()):
            if postponed and self._process(name) not in occupied and self._members[name].tasks[task] is Role.STANDBY:
                changed.give(name, task, Role.STANDBY)
                occupied.add(self._process(name))
                postponed.pop()

    def warm_up(self, moves: Collection[_Move], slots: int) -> list[tuple[TaskId, str]]:
        """Returns the warm-ups, as tasks with members: those that have begun, then others while slots are free."""
        begun: list[tuple[TaskId, str]] = []
        others: list[tuple[TaskId, str]] = []
        for move in moves:
            if move.target_member is None:
                continue
            copy = self._copy_beside(move.task, move.target_member)
            if copy is None:
                others.append((move.task, move.target_member))
            elif self._members[copy].tasks[move.task] is Role.WARMUP:
                begun.append((move.task, copy))
        begun.sort(key=self._urgency)
        others.sort(key=self._urgency)
        return begun[:slots] + others[: max(slots - self._used_slots, 0)]

    def _caught_up_copy(self, task: TaskId) -> str | None:
        return next((name for name in self._copies.get(task, ()) if self._caught_up(task, name)), None)

    def _copy_beside(self, task: TaskId, name: str) -> str | None:
        """Returns the member in the same process that has a copy of the task."""
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
