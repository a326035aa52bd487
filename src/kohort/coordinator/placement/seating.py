"""Which task goes where, once it is known how many of a subtopology each member gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kohort.coordinator.placement.problem import Problem

__all__ = ["Claims", "seat"]

Claims = Mapping[int, Sequence[int]]
"""The tasks of one subtopology that members may keep, the dearest first."""


def seat(
    problem: Problem,
    subtopology: int,
    floor: int,
    holders: Sequence[int],
    claims: Claims,
    homes: Callable[[int], Mapping[int, int]],
    active: list[int],
) -> None:
    """Give each task of a subtopology a member.

    Members keep what they claim as far as their seats go; then tasks go where their state is; then anywhere.

    Args:
        problem: what is placed.
        subtopology: which one.
        floor: seats of every member.
        holders: the members with one seat more, in ascending order.
        claims: what members may keep.
        homes: gives the cost of restoring a task in processes with state of it.
        active: the member of each task; those of the subtopology are filled in, and have to be -1 before.
    """
    extra = set(holders)
    seats: dict[int, int] = {}
    for member in range(len(problem.members)) if floor else holders:
        left = floor + (member in extra)
        for task in claims.get(member, ())[:left]:
            active[task] = member
            left -= 1
        if left:
            seats[member] = left
    first = problem.first[subtopology]
    waiting = [task for task in range(first, first + problem.partitions[subtopology]) if active[task] < 0]
    known = {task: at for task in waiting if (at := homes(task))}
    for task in sorted(known, key=lambda task: (min(known[task].values()) - problem.whole[task], task)):
        for process, _ in sorted(known[task].items(), key=lambda home: (home[1], home[0])):
            row = next((row for row in problem.rows[process] if seats.get(row)), None)
            if row is not None:
                active[task] = row
                seats[row] -= 1
                break
    free = [member for member, left in sorted(seats.items()) for _ in range(left)]
    for task, member in zip((task for task in waiting if active[task] < 0), free, strict=True):
        active[task] = member
