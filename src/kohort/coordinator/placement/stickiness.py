"""Stickiness of active tasks: what each member had before, and would keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from kohort.coordinator.placement.problem import Problem

StickyTasks = Mapping[int, Sequence[int]]
"""By member: the tasks of one subtopology that it may keep, those first that cost most elsewhere."""


def sticky_tasks(problem: Problem, floors: Sequence[int]) -> list[dict[int, list[int]]]:
    """By subtopology and member: the tasks that it had active before.

    Those come first that cost most elsewhere, so the last ones are given up. A task that several members had counts for
    the one with the fewest tasks.
    """
    owner = problem.previous_owner
    if problem.duplicate_owners:
        load = Counter(owner)
        load.update(other for others in problem.duplicate_owners.values() for other in others[1:])
        owner = list(owner)
        for task, others in problem.duplicate_owners.items():
            owner[task] = min(others, key=lambda other: (load[other], other))
    sticky: list[dict[int, list[int]]] = [{} for _ in problem.names]
    for task, (member, subtopology) in enumerate(zip(owner, problem.subtopology, strict=True)):
        if member >= 0:
            of = sticky[subtopology]
            if member in of:
                of[member].append(task)
            else:
                of[member] = [task]
    for stores, floor, of in zip(problem.stores, floors, sticky, strict=True):
        for member, tasks in of.items():
            if stores and len(tasks) > max(1, floor):
                elsewhere = partial(_cost_elsewhere, problem, problem.process[member])
                tasks.sort(key=lambda task: (-elsewhere(task), -problem.full_cost[task]))
    return sticky


def _cost_elsewhere(problem: Problem, here: int, task: int) -> int:
    costs = problem.costs_with_state(task)
    return min((cost for process, cost in costs.items() if process != here), default=problem.full_cost[task])
