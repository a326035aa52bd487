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
    from numpy.typing import ArrayLike, NDArray

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
    if reached.moved > new and reached.moved > new + _moves(problem, shares):
        return False
    unowned = [task for task, owner in enumerate(problem.owner) if owner < 0 and problem.whole[task]]
    least = sum(min(problem.homes(task).values(), default=problem.whole[task]) for task in unowned)
    return reached.restore == least or reached.restore <= least + _restored(problem, shares, spread)


def _moves(problem: Problem, shares: Shares) -> int:
    """How many tasks that have an owner have to move, at least."""
    import numpy as np

    owner = np.array(problem.owner, np.int64)
    owned = np.flatnonzero(owner >= 0)
    rivals = [(task, rival) for task, rivals in problem.rivals.items() for rival in rivals[1:]]
    bests = _Bests(problem, shares, [1] * len(problem.members), owned, owner[owned], rivals)
    stores = np.array(problem.stores)
    (low, high), (stateful_low, stateful_high) = bests.fair(stores >= 0), bests.fair(stores > 0)
    return max(
        bests.misplaced(stores >= 0, low, high),
        bests.misplaced(stores > 0, stateful_low, stateful_high)
        + bests.misplaced(stores == 0, max(0, low - stateful_high), high - stateful_low),
    )


def _restored(problem: Problem, shares: Shares, spread: Spread) -> int:
    """What has to be restored, at least, beyond each task's least."""
    import numpy as np

    process, lags = problem.process, problem.lags
    owner, whole = np.array(problem.owner, np.int64), np.array(problem.whole, np.int64)
    whole[list(lags)] = 0  # see below; of the others, all copies that there are have caught up
    owned = np.flatnonzero((owner >= 0) & (whole > 0))
    others = [
        (task, process[member])
        for task, members in (*problem.rivals.items(), *problem.keepers.items())
        for member in members
        if problem.whole[task] and task not in lags
    ]
    gaps = whole[whole > 0].tolist()  # what each task costs more where it isn't best placed
    for task in lags:
        homes, owners = problem.homes(task), problem.owners(task)
        least = 0 if owners else min(homes.values(), default=problem.whole[task])
        best = {at for at, cost in homes.items() if cost == least} | {process[owner] for owner in owners}
        others += [(task, at) for at in best]
        gaps.append(min((cost for at, cost in homes.items() if at not in best), default=problem.whole[task]) - least)
    sizes = [len(rows) for rows in problem.rows]
    bests = _Bests(problem, shares, sizes, owned, np.array(process)[owner[owned]], others)
    floors = np.array(sizes) * sum(floor for floor, stores in zip(shares.floor, problem.stores, strict=True) if stores)
    misplaced = bests.misplaced(np.array(problem.stores) > 0, floors + spread.low, floors + spread.high)
    return sum(sorted(gaps)[:misplaced])


class _Bests:
    """Where tasks are best placed, counted by place and subtopology.

    Args:
        problem: what is placed.
        shares: the fair shares.
        sizes: number of members of each place.
        tasks, places: different tasks, and a place that is best for each.
        others: more places that are best for tasks. For those without any, all places are as good.
    """

    def __init__(
        self,
        problem: Problem,
        shares: Shares,
        sizes: Sequence[int],
        tasks: NDArray[int64],
        places: NDArray[int64],
        others: Sequence[tuple[int, int]],
    ) -> None:
        import numpy as np

        count = len(sizes)
        shape = len(shares.floor), count
        subtopology = np.array(problem.subtopology, np.int64)
        if others:
            more = np.array(others, np.int64).T
            pairs = np.concatenate([tasks * count + places, more[0] * count + more[1]])
            tasks, places = np.divmod(np.unique(pairs), count)
        cells = subtopology[tasks] * count + places
        choices = np.bincount(tasks, minlength=problem.tasks)
        alone = cells[choices[tasks] == 1]
        self._partitions = np.array(problem.partitions, np.int64)
        self._anywhere = np.bincount(subtopology[choices == 0], minlength=shape[0])
        self._every = np.bincount(cells, minlength=shape[0] * count).reshape(shape)
        self._alone = np.bincount(alone, minlength=shape[0] * count).reshape(shape)
        self._rest = np.array(shares.rest, np.int64)
        self._least = np.outer(shares.floor, sizes)
        self._most = self._least + np.outer(self._rest > 0, sizes)

    def fair(self, chosen: NDArray[bool_]) -> tuple[int, int]:
        """Least and most tasks of some subtopologies in a place with one member."""
        tasks, members = int(self._partitions[chosen].sum()), self._least.shape[1]
        return tasks // members, -(-tasks // members)

    def misplaced(self, chosen: NDArray[bool_], low: ArrayLike, high: ArrayLike) -> int:
        """How many tasks of some subtopologies can't be where they are best, at least.

        Args:
            chosen: for each subtopology whether it is one of them.
            low, high: least and most tasks of these in each place.
        """
        import numpy as np

        every, alone, anywhere = self._every[chosen], self._alone[chosen], self._anywhere[chosen]
        least, most = self._least[chosen], self._most[chosen]
        lack = np.maximum(least - every, 0)
        come = np.maximum(lack.sum(axis=0), low - np.minimum(every, most).sum(axis=0)).sum() - anywhere.sum()
        come_each = np.maximum(lack.sum(axis=1) - anywhere, 0).sum()
        go = (alone.sum(axis=0) - np.minimum(np.minimum(alone, most).sum(axis=0), high)).sum()
        go_each = np.maximum(np.maximum(alone - least, 0).sum(axis=1) - self._rest[chosen], 0).sum()
        return max(0, int(come), int(come_each), int(go), int(go_each))
