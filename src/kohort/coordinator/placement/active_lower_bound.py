"""Lower bounds for placements of active tasks: a greedy one that reaches them needs no solver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kohort.coordinator.placement.fair_shares import FairShares
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.score import Score
from kohort.coordinator.placement.state_store_spread import StateStoreSpread

if TYPE_CHECKING:
    from numpy import bool_, int64
    from numpy.typing import NDArray


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
    import numpy as np

    owner = np.array(problem.previous_owner, np.int64)
    owned = np.flatnonzero(owner >= 0)
    duplicate = [task for task, others in problem.duplicate_owners.items() for _ in others]
    others = [other for others in problem.duplicate_owners.values() for other in others]
    bests = _BestPlaces(problem, shares, [1] * len(problem.members), owned, owner[owned], duplicate, others)
    stores = np.array(problem.stores)
    (low, high), (stateful_low, stateful_high) = bests.fair(stores >= 0), bests.fair(stores > 0)
    return max(
        bests.misplaced(stores >= 0, low, high),
        max(stateful, bests.misplaced(stores > 0, stateful_low, stateful_high))
        + bests.misplaced(stores == 0, max(0, low - stateful_high), high - stateful_low),
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
    import numpy as np

    process, lags = problem.process, problem.lags
    owner, full_cost = np.array(problem.previous_owner, np.int64), np.array(problem.full_cost, np.int64)
    full_cost[list(lags)] = 0  # see below; all copies of the others have caught up
    owned = np.flatnonzero((owner >= 0) & (full_cost > 0))
    holders = [
        (task, members)
        for known in (problem.duplicate_owners, problem.previous_standbys)
        for task, members in known.items()
        if problem.full_cost[task] and task not in lags
    ]
    other_tasks = [task for task, members in holders for _ in members]
    other_places = [process[member] for _, members in holders for member in members]
    gaps = full_cost[full_cost > 0].tolist()  # the extra cost of each task where it isn't best placed
    for task in lags:
        costs, owners = problem.costs_with_state(task), problem.previous_owners(task)
        least = 0 if owners else min(costs.values(), default=problem.full_cost[task])
        best = {at for at, cost in costs.items() if cost == least} | {process[owner] for owner in owners}
        other_tasks += [task] * len(best)
        other_places += best
        gaps.append(
            min((cost for at, cost in costs.items() if at not in best), default=problem.full_cost[task]) - least
        )
    sizes = [len(members) for members in problem.members_of]
    bests = _BestPlaces(problem, shares, sizes, owned, np.array(process)[owner[owned]], other_tasks, other_places)
    floors = np.array(sizes, np.int64) * sum(
        floor for floor, stores in zip(shares.floor, problem.stores, strict=True) if stores
    )
    misplaced = bests.misplaced(
        np.array(problem.stores) > 0, floors + np.array(spread.low), floors + np.array(spread.high)
    )
    return sum(sorted(gaps)[:misplaced])


class _BestPlaces:
    """Where tasks are best placed, counted by place and subtopology.

    Args:
        sizes: number of members of each place.
        tasks, places: different tasks, and a place that is best for each.
        other_tasks, other_places: more pairs of them. For tasks without any, all places are as good.
    """

    def __init__(
        self,
        problem: Problem,
        shares: FairShares,
        sizes: Sequence[int],
        tasks: NDArray[int64],
        places: NDArray[int64],
        other_tasks: Sequence[int],
        other_places: Sequence[int],
    ) -> None:
        import numpy as np

        self._count = len(sizes)
        subtopology = np.array(problem.subtopology, np.int64)
        if other_tasks:
            others = np.array(other_tasks, np.int64) * self._count + np.array(other_places, np.int64)
            tasks, places = np.divmod(np.unique(np.append(tasks * self._count + places, others)), self._count)
        choices = np.bincount(tasks, minlength=problem.tasks)
        self._sizes = np.array(sizes, np.int64)
        self._partitions = np.array(problem.partitions, np.int64)
        self._floor = np.array(shares.floor, np.int64)
        self._rest = np.array(shares.rest, np.int64)
        self._anywhere = np.bincount(subtopology[choices == 0], minlength=len(self._floor))
        # By subtopology and place where any task is best placed: the number of tasks that are, and that are nowhere
        # else; and the least and most tasks that may be there.
        cells, cell = np.unique(subtopology[tasks] * self._count + places, return_inverse=True)
        self._subtopology, self._place = np.divmod(cells, self._count)
        self._every = np.bincount(cell, minlength=len(cells))
        self._alone = np.bincount(cell[choices[tasks] == 1], minlength=len(cells))
        self._least = self._floor[self._subtopology] * self._sizes[self._place]
        self._most = self._least + (self._rest > 0)[self._subtopology] * self._sizes[self._place]

    def fair(self, chosen: NDArray[bool_]) -> tuple[int, int]:
        """Least and most tasks of some subtopologies in a place with one member."""
        tasks = int(self._partitions[chosen].sum())
        return tasks // self._count, -(-tasks // self._count)

    def misplaced(self, chosen: NDArray[bool_], low: NDArray[int64] | int, high: NDArray[int64] | int) -> int:
        """The least number of tasks of some subtopologies that can't be best placed.

        Args:
            chosen: for each subtopology whether it counts.
            low, high: least and most tasks of these subtopologies in each place.
        """
        import numpy as np

        some = chosen[self._subtopology]
        every, alone, least, most = self._every[some], self._alone[some], self._least[some], self._most[some]
        place, subtopology = self._place[some], self._subtopology[some]

        def by_place(numbers: NDArray[int64]) -> NDArray[int64]:
            return np.bincount(place, numbers, minlength=self._count).astype(np.int64)

        def by_subtopology(numbers: NDArray[int64]) -> NDArray[int64]:
            return np.bincount(subtopology, numbers, minlength=len(chosen))[chosen].astype(np.int64)

        floor, rest, anywhere = self._floor[chosen], self._rest[chosen], self._anywhere[chosen]
        filled = np.minimum(every, least)
        lack = floor.sum() * self._sizes - by_place(filled)
        come = np.maximum(lack, low - by_place(np.minimum(every, most))).sum() - anywhere.sum()
        come_each = np.maximum(floor * self._sizes.sum() - by_subtopology(filled) - anywhere, 0).sum()
        go = (by_place(alone) - np.minimum(by_place(np.minimum(alone, most)), high)).sum()
        go_each = np.maximum(by_subtopology(np.maximum(alone - least, 0)) - rest, 0).sum()
        return max(0, int(come), int(come_each), int(go), int(go_each))
