"""The spread of state stores over processes (KIP-262): the least there can be, and a local search for it."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from math import gcd

from kohort.coordinator.placement.extra_tasks import ExtraTasks
from kohort.coordinator.placement.fair_shares import FairShares, apportion
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.tie_breaking import fewest_extra_tasks

_Ranked = tuple[int, int]  # the deviation of a process, and its number


class StateStoreSpread:
    """The bounds of an even spread of state stores.

    A process's share is in proportion to its members. The spread is the largest minus the smallest deviation of a
    process from its share; with equally many members in each process that is simply most minus fewest state stores.

    The floor of each subtopology, which every member gets, is even; so all spread comes from the extra tasks. Where all
    of these have equally many state stores, the least spread is known, and which numbers of extra tasks make it.
    Otherwise it is a partition problem, hard in general: there is a bound, mostly met where there are many extra tasks.

    Attributes:
        low, high: least and most stateful extra tasks of each process. If `exact`, only these make the spread least.
        least: no spread is smaller; times the number of members, which makes it an integer.
        exact: whether all stateful extra tasks have equally many state stores.
    """

    def __init__(self, problem: Problem, shares: FairShares) -> None:
        self._problem = problem
        self._sizes = [len(members) for members in problem.members_of]
        self._members = len(problem.members)
        extras = [(rest, stores) for rest, stores in zip(shares.rest, problem.stores, strict=True) if rest and stores]
        self._stores = sum(rest * stores for rest, stores in extras)
        self._floors = sum(floor * stores for floor, stores in zip(shares.floor, problem.stores, strict=True))
        unit = gcd(*(stores for _, stores in extras)) or 1
        self.exact = all(stores == unit for _, stores in extras)
        spread, self.low, self.high = apportion(self._stores // unit, self._sizes)
        self.least = spread * unit
        if not self.exact:
            self.low = [size * shares.stateful for size in self._sizes]
            self.high = [size * shares.stateful_high for size in self._sizes]

    def deviation(self, process: int, stores: int) -> int:
        """Distance of a process from its share, if its extra tasks have so many state stores; times the members."""
        return self._members * stores - self._sizes[process] * self._stores

    def of(self, stores: Iterable[int]) -> int:
        """The spread, times the number of members, if processes have that many state stores in all."""
        floors = [size * self._floors for size in self._sizes]
        deviations = [self.deviation(process, count - floors[process]) for process, count in enumerate(stores)]
        return max(deviations) - min(deviations)

    def reduce(self, extra_tasks: ExtraTasks) -> None:
        """Exchanges stateful extra tasks between processes as long as that makes the spread smaller.

        A local search: it looks at the process farthest above its share with each other, and at the one farthest below
        with each other, for an exchange after which the two are more even. It ends where there is none.
        """
        order = sorted((self.deviation(process, count), process) for process, count in enumerate(extra_tasks.stores))
        while order[-1][0] - order[0][0] > self.least:
            for above, below in _pairs(order):
                if exchange := self._best_exchange(extra_tasks, above, below):
                    break
            else:
                return
            given, taken = exchange
            source, target = above[1], below[1]
            self._transfer(extra_tasks, source, target, given)
            if taken is not None:
                self._transfer(extra_tasks, target, source, taken)
            for old in above, below:
                order.remove(old)
                insort(order, (self.deviation(old[1], extra_tasks.stores[old[1]]), old[1]))

    def _best_exchange(self, extra_tasks: ExtraTasks, above: _Ranked, below: _Ranked) -> tuple[int, int | None] | None:
        """Subtopologies of an extra task to give and, if any, of one to take, that leave the two processes most even.

        Among equals, those that lose least.
        """
        gap = above[0] - below[0]
        source, target = above[1], below[1]
        mine, theirs = self._values(extra_tasks, source), self._values(extra_tasks, target)
        give = [s for s in sorted(mine) if len(theirs.get(s, ())) < self._sizes[target]]
        take: list[int | None] = [s for s in sorted(theirs) if len(mine.get(s, ())) < self._sizes[source]]
        if extra_tasks.counts[source] > self.low[source] and extra_tasks.counts[target] < self.high[target]:
            take.append(None)
        best, exchange = (gap, 0), None
        for given in give:
            for taken in take:
                difference = self._problem.stores[given] - (0 if taken is None else self._problem.stores[taken])
                after = abs(gap - 2 * self._members * difference)
                if after < gap:
                    loss = min(mine[given]) + (0 if taken is None else min(theirs[taken]))
                    if exchange is None or (after, loss) < best:
                        best, exchange = (after, loss), (given, taken)
        return exchange

    def _values(self, extra_tasks: ExtraTasks, process: int) -> dict[int, list[int]]:
        """By subtopology, the values of a process's extra tasks."""
        values: dict[int, list[int]] = {}
        for member in self._problem.members_of[process]:
            for subtopology, value in extra_tasks.stateful[member].items():
                values.setdefault(subtopology, []).append(value)
        return values

    def _transfer(self, extra_tasks: ExtraTasks, source: int, target: int, subtopology: int) -> None:
        extras = extra_tasks.stateful
        givers = [member for member in self._problem.members_of[source] if subtopology in extras[member]]
        takers = [member for member in self._problem.members_of[target] if subtopology not in extras[member]]
        giver = min(givers, key=lambda member: (extras[member][subtopology], -len(extras[member]), member))
        extra_tasks.move(giver, min(takers, key=fewest_extra_tasks(extras)), subtopology)


def _pairs(order: list[_Ranked]) -> Iterator[tuple[_Ranked, _Ranked]]:
    """Pairs with the process farthest above its share, then with the one farthest below."""
    for below in order[:-1]:
        yield order[-1], below
    for above in reversed(order[1:-1]):
        yield above, order[0]
