"""Active tasks of small groups without OR-Tools, exactly, where a min-cost flow isn't enough."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Final

from kohort.coordinator.placement.active_flow import ActiveFlows
from kohort.coordinator.placement.active_solution import ActiveSolution
from kohort.coordinator.placement.fair_shares import FairShares
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.state_store_spread import StateStoreSpread

_MOST_HOLDERS: Final = 256  # ways to give out the extra tasks of a subtopology; each takes a flow
_MOST: Final = 50_000  # ways that are tried for a subtopology, with those of the subtopologies before

_Extras = tuple[tuple[int, ...], tuple[int, ...]]
"""Number of extra tasks of each member, and of state stores in those of each process."""


def solve_by_search(
    problem: Problem, shares: FairShares, spread: StateStoreSpread, flows: ActiveFlows
) -> ActiveSolution | None:
    """Finds the least spread of state stores, then the least to restore, then the fewest tasks that move.

    It tries who gets the extra tasks of one subtopology after the other, stateful ones first. Of all ways to the same
    numbers of extra tasks and state stores, it goes on from the best.

    Returns:
        the optimum; None if there is too much to try.
    """
    nothing: _Extras = (0,) * len(problem.members), (0,) * len(problem.members_of)
    ways: dict[_Extras, tuple[int, int, ActiveSolution]] = {nothing: (0, 0, ActiveSolution())}
    for stateful in (True, False):
        low, high = (shares.stateful, shares.stateful_high) if stateful else (shares.total, shares.total_high)
        for subtopology, stores in enumerate(problem.stores):
            if (stores > 0) is stateful:
                choices = comb(len(problem.members), shares.rest[subtopology])
                if choices > _MOST_HOLDERS or choices * len(ways) > _MOST:
                    return None
                ways = _tried(problem, subtopology, shares.rest[subtopology], high, flows, ways)
        ways = {extras: way for extras, way in ways.items() if min(extras[0]) >= low}
        if stateful:
            spreads = {extras: _spread(spread, extras[1]) for extras in ways}
            least = min(spreads.values())
            ways = {extras: way for extras, way in ways.items() if spreads[extras] == least}
    return min(ways.values(), key=lambda way: way[:2])[2]


def _tried(
    problem: Problem,
    subtopology: int,
    rest: int,
    high: int,
    flows: ActiveFlows,
    ways: dict[_Extras, tuple[int, int, ActiveSolution]],
) -> dict[_Extras, tuple[int, int, ActiveSolution]]:
    """The ways, each with all holders of the subtopology's extra tasks that leave members at most `high` of them."""
    found: dict[_Extras, tuple[int, int, ActiveSolution]] = {}
    for holders in combinations(range(len(problem.members)), rest):
        solution = flows.with_holders(subtopology, holders)
        restore, moved = _cost(problem, subtopology, solution)
        for (counts, stores), (restored, had_moved, others) in ways.items():
            if any(counts[member] == high for member in holders):
                continue
            more, more_stores = list(counts), list(stores)
            for member in holders:
                more[member] += 1
                more_stores[problem.process[member]] += problem.stores[subtopology]
            extras = tuple(more), tuple(more_stores)
            costs = restored + restore, had_moved + moved
            if extras not in found or costs < found[extras][:2]:
                found[extras] = (*costs, others | solution)
    return found


def _cost(problem: Problem, subtopology: int, solution: ActiveSolution) -> tuple[int, int]:
    """What is restored, and how many tasks move."""
    first, count = problem.first_task[subtopology], problem.partitions[subtopology]
    moved = [task for task in range(first, first + count) if task not in solution.kept]
    restore = 0
    for task in moved:
        at = solution.with_state.get(task)
        restore += problem.full_cost[task] if at is None else problem.costs_with_state(task)[at]
    return restore, len(moved)


def _spread(spread: StateStoreSpread, stores: tuple[int, ...]) -> int:
    deviations = [spread.deviation(process, count) for process, count in enumerate(stores)]
    return max(deviations) - min(deviations)
