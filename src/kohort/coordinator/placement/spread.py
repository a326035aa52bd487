"""How evenly processes can share state stores (KIP-262), and making it so."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from math import gcd

from kohort.coordinator.placement.pattern import Pattern
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.shares import Shares, apportion

__all__ = ["Spread"]

_Ranked = tuple[int, int]  # the deviation of a process, and its number


class Spread:
    """Bounds for an even share of state stores.

    A process's share is in proportion to its members. The spread is the largest minus the smallest deviation of a
    process from its share; with equally many members in each process that is simply most minus fewest state stores.

    What every member has for certain, the floor of each subtopology, is even; so all spread comes from the extras.
    Where all of these have equally many state stores, the least spread is known, and which numbers of extras make it.
    Otherwise it is a partition problem, hard in general: there is a bound, mostly met where there are many extras.

    Attributes:
        low, high: least and most stateful extras of each process. If `exact`, just these make the spread the least.
        least: no spread is smaller; times the number of members, which makes it an integer.
        exact: whether all extras have equally many state stores.
    """

    def __init__(self, problem: Problem, shares: Shares) -> None:
        self._problem = problem
        self._sizes = [len(rows) for rows in problem.rows]
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
        """How far from its share a process is with that many state stores in extras, times the number of members."""
        return self._members * stores - self._sizes[process] * self._stores

    def of(self, stores: Iterable[int]) -> int:
        """The spread, times the number of members, where processes have that many state stores in all."""
        certain = [size * self._floors for size in self._sizes]
        deviations = [self.deviation(process, count - certain[process]) for process, count in enumerate(stores)]
        return max(deviations) - min(deviations)

    def reduce(self, pattern: Pattern) -> None:
        """Exchange stateful extras between processes as long as that makes the spread smaller.

        A local search: it looks at the process farthest above its share with each other, and at the one farthest below
        with each other, for an exchange after which the two are more even. It ends where there is none.
        """
        order = sorted((self.deviation(process, count), process) for process, count in enumerate(pattern.stores))
        while order[-1][0] - order[0][0] > self.least:
            for rich, poor in _pairs(order):
                if exchange := self._best_exchange(pattern, rich, poor):
                    break
            else:
                return
            given, taken = exchange
            source, target = rich[1], poor[1]
            self._transfer(pattern, source, target, given)
            if taken is not None:
                self._transfer(pattern, target, source, taken)
            for old in rich, poor:
                order.remove(old)
                insort(order, (self.deviation(old[1], pattern.stores[old[1]]), old[1]))

    def _best_exchange(self, pattern: Pattern, rich: _Ranked, poor: _Ranked) -> tuple[int, int | None] | None:
        """Subtopologies of an extra to give and, if any, of one to take, that leave the two processes most even.

        Among equals, those that lose least.
        """
        gap = rich[0] - poor[0]
        source, target = rich[1], poor[1]
        mine, theirs = self._columns(pattern, source), self._columns(pattern, target)
        give = [s for s in sorted(mine) if len(theirs.get(s, ())) < self._sizes[target]]
        take: list[int | None] = [s for s in sorted(theirs) if len(mine.get(s, ())) < self._sizes[source]]
        if pattern.counts[source] > self.low[source] and pattern.counts[target] < self.high[target]:
            take.append(None)
        best, choice = (gap, 0), None
        for given in give:
            for taken in take:
                difference = self._problem.stores[given] - (0 if taken is None else self._problem.stores[taken])
                after = abs(gap - 2 * self._members * difference)
                if after < gap:
                    loss = min(mine[given]) + (0 if taken is None else min(theirs[taken]))
                    if choice is None or (after, loss) < best:
                        best, choice = (after, loss), (given, taken)
        return choice

    def _columns(self, pattern: Pattern, process: int) -> dict[int, list[int]]:
        """By subtopology, the values of a process's extras."""
        columns: dict[int, list[int]] = {}
        for member in self._problem.rows[process]:
            for subtopology, value in pattern.stateful[member].items():
                columns.setdefault(subtopology, []).append(value)
        return columns

    def _transfer(self, pattern: Pattern, source: int, target: int, subtopology: int) -> None:
        extras = pattern.stateful
        givers = [member for member in self._problem.rows[source] if subtopology in extras[member]]
        takers = [member for member in self._problem.rows[target] if subtopology not in extras[member]]
        giver = min(givers, key=lambda member: (extras[member][subtopology], -len(extras[member]), member))
        pattern.move(giver, min(takers, key=lambda member: (len(extras[member]), member)), subtopology)


def _pairs(order: list[_Ranked]) -> Iterator[tuple[_Ranked, _Ranked]]:
    """Each process with one that has less: first with the richest, then with the poorest."""
    for poor in order[:-1]:
        yield order[-1], poor
    for rich in reversed(order[1:-1]):
        yield rich, order[0]
