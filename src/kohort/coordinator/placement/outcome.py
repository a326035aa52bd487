"""Where tasks are now, where assignors would have them, and what moves between the two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kohort.coordinator.placement.metrics import Metrics, Restore, RestoreCosts, measure
from kohort.coordinator.placement.model import Group, Placement
from kohort.coordinator.placement.what_if import Change, after_placement
from kohort.streams.tasks import TaskId

Assignor = Callable[[Group], Placement]


class InfeasibleError(Exception):
    """There are tasks, and no members."""


@dataclass(frozen=True, slots=True)
class Move:
    """A task that gets another owner.

    Attributes:
        task: which one.
        source: the member that had it; None if none did.
        target: the member that gets it.
        restore: what the target has to restore first.
    """

    task: TaskId
    source: str | None
    target: str
    restore: Restore


@dataclass(frozen=True, slots=True)
class Outcome:
    """A placement of a group.

    Attributes:
        group: what was placed.
        moves: the tasks that get another owner, in order; none if the present owners aren't known.
    """

    group: Group
    placement: Placement
    metrics: Metrics
    moves: tuple[Move, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The present placement, and those of assignors.

    Attributes:
        now: the placement before anything is changed or placed; None if no member has tasks.
        outcomes: the outcome of each assignor, by name.
    """

    now: Outcome | None
    outcomes: Mapping[str, Outcome]


def compare(group: Group, changes: Iterable[Change], assignors: Mapping[str, Assignor]) -> Comparison:
    """Apply the changes to the group, and place it with each assignor.

    A group whose members have no tasks yet is placed by the first assignor before it is changed, and counts as that.

    Raises:
        InfeasibleError: there are tasks and no members.
        ValueError: one of the changes can't be made.
    """
    changes = list(changes)
    if changes and group.members and not has_tasks(group):
        group = after_placement(group, next(iter(assignors.values()))(group))
    now = present(group) if has_tasks(group) else None
    changed = group
    for change in changes:
        changed = change.applied(changed)
    tasks = sum(subtopology.partitions for subtopology in changed.subtopologies)
    if tasks and not changed.members:
        raise InfeasibleError(
            f"there {'is 1 task' if tasks == 1 else f'are {tasks:,} tasks'}, and no member to run any"
        )
    return Comparison(now, {name: _placed(changed, assignor, now) for name, assignor in assignors.items()})


def has_tasks(group: Group) -> bool:
    """Whether any member has an active task."""
    return any(member.active for member in group.members)


def present(group: Group) -> Outcome:
    """Returns the placement that members have, without tasks that don't exist."""
    there = {subtopology.id: subtopology.partitions for subtopology in group.subtopologies}
    active: dict[TaskId, str] = {}
    standby: dict[TaskId, tuple[str, ...]] = {}
    for member in group.members:
        for task in member.active:
            if task.partition < there.get(task.subtopology, 0):
                active.setdefault(task, member.id)
        for task in member.standby:
            if task.partition < there.get(task.subtopology, 0):
                standby[task] = (*standby.get(task, ()), member.id)
    placement = Placement(active, standby)
    return Outcome(group, placement, measure(group, placement))


def _placed(group: Group, assignor: Assignor, now: Outcome | None) -> Outcome:
    placement = assignor(group)
    costs = RestoreCosts(group)
    moves = (
        Move(task, source, target, costs.of(task, target))
        for task, target in sorted(placement.active.items())
        if now is not None and (source := now.placement.active.get(task)) != target
    )
    return Outcome(group, placement, measure(group, placement), tuple(moves))
