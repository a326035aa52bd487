"""How good a placement can be at most: what a greedy one is held against before a solver is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.score import Score
from kohort.coordinator.placement.shares import Shares
from kohort.coordinator.placement.spread import Spread

if TYPE_CHECKING:
    from numpy import bool_, int64
    from numpy.typing import NDArray

__all__ = ["is_certainly_best"]


def is_certainly_best(problem: Problem, shares: Shares, spread: Spread, reached: Score) -> bool:
    """Whether counting is enough to see that no balanced placement has a better score.

    A task is best placed where it costs least. Where fewer tasks are at their best than the floors of shares, so many
    have to come; where more than the ceilings, so many have to go. Mostly that is all that has to be, when nothing
    changed, when members join or leave; and a greedy placement gets there. What this doesn't see may be the best
    nevertheless.
    """
    if reached.spread > spread.least:
        return False
    new = problem.owner.count(-1)
    unowned = [task for task, owner in enumerate(problem.owner) if owner < 0 and problem.whole[task]]
    least = sum(min(problem.homes(task).values(), default=problem.whole[task]) for task in unowned)
    if reached.moved > new:
        apart = _moves_without_restoring(problem, shares, spread) if reached.restore == least else 0
        if reached.moved > new + _moves(problem, shares, apart):
            return False
    return reached.restore == least or reached.restore <= least + _restored(problem, shares, spread)


def _moves(problem: Problem, shares: Shares, stateful: int) -> int:
    """How many tasks that have an owner have to move, at least, if so many stateful ones have to."""
    import numpy as np

    owner = np.array(problem.owner, np.int64)
    owned = np.flatnonzero(owner >= 0)
    twice = [task for task, rivals in problem.rivals.items() for _ in rivals]
    rivals = [rival for rivals in problem.rivals.values() for rival in rivals]
    bests = _Bests(problem, shares, [1] * len(problem.members), owned, owner[owned], twice, rivals)
    stores = np.array(problem.stores)
    (low, high), (stateful_low, stateful_high) = bests.fair(stores >= 0), bests.fair(stores > 0)
    return max(
        bests.misplaced(stores >= 0, low, high),
        max(stateful, bests.misplaced(stores > 0, stateful_low, stateful_high))
        + bests.misplaced(stores == 0, max(0, low - stateful_high), high - stateful_low),
    )


def _moves_without_restoring(problem: Problem, shares: Shares, spread: Spread) -> int:
    """How many stateful tasks that have an owner have to move, at least, if each may only go where nothing is restored.

    Processes with too many give up some to those with room. Beside that, members with too many give up what can't go
    there, as there is no copy of it.
    """
    if problem.rivals or not spread.exact:
        return 0
    owned = [
        task for task, owner in enumerate(problem.owner) if owner >= 0 and problem.stores[problem.subtopology[task]]
    ]
    had = [0] * len(problem.members)
    for task in owned:
        had[problem.owner[task]] += 1
    floors = sum(floor for floor, stores in zip(shares.floor, problem.stores, strict=True) if stores)
    above = [
        sum([had[member] for member in members]) - floors * len(members) - high
        for members, high in zip(problem.rows, spread.high, strict=True)
    ]
    ceiling = floors + shares.stateful_high
    able = [0] * len(problem.members)  # tasks that may go where there is room
    for task in owned:
        if had[owner := problem.owner[task]] > ceiling:
            homes = problem.homes(task)
            able[owner] += not problem.whole[task] or any(not cost and above[at] < 0 for at, cost in homes.items())
    unable = sum(
        max(0, count - ceiling - (able[member] if above[problem.process[member]] >= 0 else 0))
        for member, count in enumerate(had)
    )
    return unable + sum(max(0, count) for count in above)


def _restored(problem: Problem, shares: Shares, spread: Spread) -> int:
    """What has to be restored, at least, beyond each task's least."""
    import numpy as np

    process, lags = problem.process, problem.lags
    owner, whole = np.array(problem.owner, np.int64), np.array(problem.whole, np.int64)
    whole[list(lags)] = 0  # see below; of the others, all copies that there are have caught up
    owned = np.flatnonzero((owner >= 0) & (whole > 0))
    holders = [
        (task, members)
        for known in (problem.rivals, problem.keepers)
        for task, members in known.items()
        if problem.whole[task] and task not in lags
    ]
    other_tasks = [task for task, members in holders for _ in members]
    other_places = [process[member] for _, members in holders for member in members]
    gaps = whole[whole > 0].tolist()  # what each task costs more where it isn't best placed
    for task in lags:
        homes, owners = problem.homes(task), problem.owners(task)
        least = 0 if owners else min(homes.values(), default=problem.whole[task])
        best = {at for at, cost in homes.items() if cost == least} | {process[owner] for owner in owners}
        other_tasks += [task] * len(best)
        other_places += best
        gaps.append(min((cost for at, cost in homes.items() if at not in best), default=problem.whole[task]) - least)
    sizes = [len(rows) for rows in problem.rows]
    bests = _Bests(problem, shares, sizes, owned, np.array(process)[owner[owned]], other_tasks, other_places)
    floors = np.array(sizes, np.int64) * sum(
        floor for floor, stores in zip(shares.floor, problem.stores, strict=True) if stores
    )
    misplaced = bests.misplaced(
        np.array(problem.stores) > 0, floors + np.array(spread.low), floors + np.array(spread.high)
    )
    return sum(sorted(gaps)[:misplaced])


class _Bests:
    """Where tasks are best placed, counted by place and subtopology.

    Args:
        problem: what is placed.
        shares: the fair shares.
        sizes: number of members of each place.
        tasks, places: different tasks, and a place that is best for each.
        other_tasks, other_places: more pairs of them. For tasks without any, all places are as good.
    """

    def __init__(
        self,
        problem: Problem,
        shares: Shares,
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
        # By subtopology and place, where any task is best placed: how many are, and how many are nowhere else; and the
        # least and most that may be there.
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
        """How many tasks of some subtopologies can't be where they are best, at least.

        Args:
            chosen: for each subtopology whether it is one of them.
            low, high: least and most tasks of these in each place.
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
