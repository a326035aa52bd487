"""Lower bounds for placements of active tasks: a greedy one that reaches them needs no solver."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set

from kohort.coordinator.placement.fair_shares import FairShares
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.score import Score
from kohort.coordinator.placement.state_store_spread import StateStoreSpread

_Cell = tuple[int, int, int, int, int]
"""Of a subtopology: a place, and how many of the tasks that are best placed there fit into the floors, and into the
ceilings; how many are best placed nowhere else, and how many of those fit into the ceilings."""


def is_provably_best(problem: Problem, shares: FairShares, spread: StateStoreSpread, reached: Score) -> bool:
    """Whether counting proves that no balanced placement has a better score.

    A task is best placed where it costs least. Where fewer tasks are best placed than the floors of shares, the
    difference has to come; where more than the ceilings, the difference has to go. Mostly no other moves are needed,
    when nothing changed, or members join or leave; and a greedy placement gets there. False doesn't mean that there is
    a better one.
    """
    if reached.spread > spread.least:
        return False
    new = problem.previous_owner.count(-1)
    unowned = [task for task, owner in enumerate(problem.previous_owner) if owner < 0 and problem.full_cost[task]]
    least = sum(min(problem.costs_with_state(task).values(), default=problem.full_cost[task]) for task in unowned)
    if reached.moved > new:
        apart = _moves_without_restoring(problem, shares, spread) if reached.restore == least else 0
        if reached.moved > new + _moves(problem, shares, apart):
            return False
    return reached.restore == least or reached.restore <= least + _restored(problem, shares, spread)


def _moves(problem: Problem, shares: FairShares, stateful: int) -> int:
    """The least number of tasks with a previous owner that have to move, if so many stateful ones have to."""
    count = len(problem.members)
    best = {task: problem.previous_owners(task) for task, owner in enumerate(problem.previous_owner) if owner >= 0}
    places = _BestPlaces(problem, shares, [1] * count, best)
    with_state = {subtopology for subtopology, stores in enumerate(problem.stores) if stores}
    without = set(range(len(problem.stores))) - with_state

    def misplaced(chosen: Set[int], low: int, high: int) -> int:
        return places.misplaced(chosen, [low] * count, [high] * count)

    def fair(tasks: int) -> tuple[int, int]:
        return tasks // count, -(-tasks // count)

    low, high = fair(problem.tasks)
    stateful_low, stateful_high = fair(sum(problem.partitions[subtopology] for subtopology in with_state))
    return max(
        misplaced(with_state | without, low, high),
        max(stateful, misplaced(with_state, stateful_low, stateful_high))
        + misplaced(without, max(0, low - stateful_high), high - stateful_low),
    )


def _moves_without_restoring(problem: Problem, shares: FairShares, spread: StateStoreSpread) -> int:
    """The least number of stateful tasks with a previous owner that have to move, if nothing may be restored by it.

    Processes with too many give some to those with room. Besides, members with too many give up tasks that can't go
    there, as there is no copy of them.
    """
    if problem.duplicate_owners or not spread.exact:
        return 0
    owned = [
        task
        for task, owner in enumerate(problem.previous_owner)
        if owner >= 0 and problem.stores[problem.subtopology[task]]
    ]
    had = [0] * len(problem.members)
    for task in owned:
        had[problem.previous_owner[task]] += 1
    floors = sum(floor for floor, stores in zip(shares.floor, problem.stores, strict=True) if stores)
    above = [
        sum([had[member] for member in members]) - floors * len(members) - high
        for members, high in zip(problem.members_of, spread.high, strict=True)
    ]
    ceiling = floors + shares.stateful_high
    able = [0] * len(problem.members)  # tasks that may go where there is room
    for task in owned:
        if had[owner := problem.previous_owner[task]] > ceiling:
            costs = problem.costs_with_state(task)
            able[owner] += not problem.full_cost[task] or any(not cost and above[at] < 0 for at, cost in costs.items())
    unable = sum(
        max(0, count - ceiling - (able[member] if above[problem.process[member]] >= 0 else 0))
        for member, count in enumerate(had)
    )
    return unable + sum(max(0, count) for count in above)


def _restored(problem: Problem, shares: FairShares, spread: StateStoreSpread) -> int:
    """The least that has to be restored beyond the least of each task."""
    process = problem.process
    best: dict[int, Set[int]] = {}
    gaps = []  # the extra cost of each task where it isn't best placed
    for task, full_cost in enumerate(problem.full_cost):
        owners = problem.previous_owners(task)
        if task in problem.lags:
            costs = problem.costs_with_state(task)
            least = 0 if owners else min(costs.values(), default=full_cost)
            best[task] = {at for at, cost in costs.items() if cost == least} | {process[owner] for owner in owners}
            gaps.append(min((cost for at, cost in costs.items() if at not in best[task]), default=full_cost) - least)
        elif full_cost:  # all copies have caught up
            best[task] = {process[member] for member in (*owners, *problem.previous_standbys.get(task, ()))}
            gaps.append(full_cost)
    sizes = [len(members) for members in problem.members_of]
    with_state = {subtopology for subtopology, stores in enumerate(problem.stores) if stores}
    floors = sum(shares.floor[subtopology] for subtopology in with_state)
    low = [size * floors + extra for size, extra in zip(sizes, spread.low, strict=True)]
    high = [size * floors + extra for size, extra in zip(sizes, spread.high, strict=True)]
    misplaced = _BestPlaces(problem, shares, sizes, best).misplaced(with_state, low, high)
    return sum(sorted(gaps)[:misplaced])


class _BestPlaces:
    """Where tasks are best placed, counted by subtopology and place.

    Args:
        sizes: number of members of each place.
        best: by task the places that are best for it; all are as good for tasks without any.
    """

    def __init__(
        self, problem: Problem, shares: FairShares, sizes: Sequence[int], best: Mapping[int, Collection[int]]
    ) -> None:
        self._sizes = sizes
        self._floor = shares.floor
        self._anywhere = list(problem.partitions)
        every: list[dict[int, int]] = [{} for _ in problem.partitions]  # tasks that are best placed there
        alone: list[dict[int, int]] = [{} for _ in problem.partitions]  # those that are best placed nowhere else
        for task, places in best.items():
            subtopology = problem.subtopology[task]
            self._anywhere[subtopology] -= bool(places)
            for place in places:
                every[subtopology][place] = every[subtopology].get(place, 0) + 1
                if len(places) == 1:
                    alone[subtopology][place] = alone[subtopology].get(place, 0) + 1
        # By subtopology: tasks that have to come to where too few are best placed, and to go from where too many are.
        self._come: list[int] = []
        self._go: list[int] = []
        self._cells: list[list[_Cell]] = []
        for subtopology, (floor, rest) in enumerate(zip(shares.floor, shares.rest, strict=True)):
            cells = []
            lack, excess = floor * sum(sizes) - self._anywhere[subtopology], -rest
            for place, count in every[subtopology].items():
                least = floor * sizes[place]
                most = least + sizes[place] * (rest > 0)
                only_here = alone[subtopology].get(place, 0)
                cells.append((place, min(count, least), min(count, most), only_here, min(only_here, most)))
                lack -= min(count, least)
                excess += max(0, only_here - least)
            self._cells.append(cells)
            self._come.append(max(0, lack))
            self._go.append(max(0, excess))

    def misplaced(self, chosen: Set[int], low: Sequence[int], high: Sequence[int]) -> int:
        """The least number of tasks of some subtopologies that can't be best placed.

        Args:
            chosen: these subtopologies.
            low, high: least and most of their tasks in each place.
        """
        floors = sum(self._floor[subtopology] for subtopology in chosen)
        lack = [floors * size for size in self._sizes]
        below, alone, room = list(low), [0] * len(lack), [0] * len(lack)
        for subtopology in chosen:
            for place, filled, fitting, only_here, fitting_alone in self._cells[subtopology]:
                lack[place] -= filled
                below[place] -= fitting
                alone[place] += only_here
                room[place] += fitting_alone
        come = sum(map(max, lack, below)) - sum(self._anywhere[subtopology] for subtopology in chosen)
        go = sum(alone) - sum(map(min, room, high))
        return max(0, come, go, sum(self._come[each] for each in chosen), sum(self._go[each] for each in chosen))
