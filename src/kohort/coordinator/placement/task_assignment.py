"""Which task of a subtopology goes to which member, once it is known how many tasks each member gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.stickiness import StickyTasks
from kohort.coordinator.placement.tie_breaking import cheapest_processes


def assign_tasks(
    problem: Problem,
    subtopology: int,
    floor: int,
    holders: Sequence[int],
    sticky: StickyTasks,
    costs: Callable[[int], Mapping[int, int]],
    active: list[int],
) -> None:
    """Gives each task of a subtopology a member.

    Members keep their sticky tasks as far as their quota goes; then tasks go where their state is; then anywhere.

    Args:
        floor: quota of every member.
        holders: the members with an extra task, whose quota is one more, in ascending order.
        sticky: what members may keep.
        costs: gives the cost of restoring a task, by process with state of it.
        active: the member of each task; those of the subtopology are filled in, and have to be -1 before.
    """
    extra = set(holders)
    quota: dict[int, int] = {}
    for member in range(len(problem.members)) if floor else holders:
        left = floor + (member in extra)
        for task in sticky.get(member, ())[:left]:
            active[task] = member
            left -= 1
        if left:
            quota[member] = left
    first = problem.first_task[subtopology]
    unassigned = [task for task in range(first, first + problem.partitions[subtopology]) if active[task] < 0]
    with_state = {task: by_process for task in unassigned if (by_process := costs(task))}
    for task in sorted(with_state, key=lambda task: (min(with_state[task].values()) - problem.full_cost[task], task)):
        for process, _ in cheapest_processes(with_state[task]):
            member = next((member for member in problem.members_of[process] if quota.get(member)), -1)
            if member >= 0:
                active[task] = member
                quota[member] -= 1
                break
    free = [member for member, left in sorted(quota.items()) for _ in range(left)]
    for task, member in zip((task for task in unassigned if active[task] < 0), free, strict=True):
        active[task] = member
