"""The score that solvers compare placements of active tasks by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.state_store_spread import StateStoreSpread


class Score(NamedTuple):
    """Less is better, and the first counts most.

    Attributes:
        spread: of the state stores of processes, as in `StateStoreSpread`.
        restore: what is to be restored.
        moved: tasks that run on a member that didn't have them active.
    """

    spread: int
    restore: int
    moved: int


def score(problem: Problem, spread: StateStoreSpread, active: Sequence[int]) -> Score:
    """The score of a balanced placement, by the member of each task."""
    stores = [0] * len(problem.members_of)
    restore = moved = 0
    every = zip(active, problem.previous_owner, problem.subtopology, strict=True)
    process, stores_of = problem.process, problem.stores
    for task, (member, owner, subtopology) in enumerate(every):
        if count := stores_of[subtopology]:
            stores[process[member]] += count
        if member != owner and member not in problem.duplicate_owners.get(task, ()):
            moved += 1
            if count:
                restore += problem.restore_cost(task, member)
    return Score(spread.of(stores), restore, moved)
