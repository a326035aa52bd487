"""The optimal assignor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kohort.coordinator.placement.certificate import is_certainly_best
from kohort.coordinator.placement.choice import Choice
from kohort.coordinator.placement.exact import is_small, solve_exactly
from kohort.coordinator.placement.flow import Bounds, least_movement
from kohort.coordinator.placement.greedy import Greedy
from kohort.coordinator.placement.model import Group, Placement
from kohort.coordinator.placement.pattern import Pattern
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.score import score
from kohort.coordinator.placement.shares import Shares
from kohort.coordinator.placement.spread import Spread
from kohort.coordinator.placement.standby_certificate import are_certainly_best
from kohort.coordinator.placement.standby_flow import move_least
from kohort.coordinator.placement.standbys import GreedyStandbys

__all__ = ["optimal"]


def optimal(group: Group) -> Placement:
    """Place tasks as well as can be.

    In this order:

    1. Each task has one active member. Standbys are in processes other than the active one's and each other's, as
       many as asked or as processes allow.
    2. Of each subtopology, of all stateful tasks, and of all tasks, members have the floor or the ceiling of a fair share.
    3. State stores are spread evenly over processes (`Spread`).
    4. The least is to be restored; among that, the fewest tasks move.
    5. Standbys are in racks as different as possible, then evenly on members, then where they are.

    Proved best are 1 and 2 always; 3 where all stateful tasks that can't be shared evenly have equally many state stores,
    and in small groups; 4 where 3 is, ...

    Args:
        group: what is placed, checked.
    """
    if not group.members:
        return Placement({})
    problem = Problem(group)
    active = _active(problem)
    return problem.placement(active, _standbys(problem, active))


def _standbys(problem: Problem, active: Sequence[int]) -> dict[int, list[int]]:
    greedy = GreedyStandbys(problem, active)
    if are_certainly_best(problem, active, greedy.copies):
        return greedy.copies
    return move_least(problem, active, greedy.racks, greedy.copies)


def _active(problem: Problem) -> list[int]:
    shares = Shares(problem)
    spread = Spread(problem, shares)
    greedy = Greedy(problem, shares, spread)
    best, active = score(problem, spread, greedy.active), greedy.active
    if is_certainly_best(problem, shares, spread, best):
        return active
    flows = _Flows(problem, shares)
    free = flows.free().placement(problem, shares)
    # with no regard for state stores nothing moves less
    freely = score(problem, spread, free)
    if freely.spread == spread.least:
        return free
    if is_small(problem) and (choice := solve_exactly(problem, shares, spread, best.spread)):
        return choice.placement(problem, shares)
    if freely < best:
        best, active = freely, free
    choice = flows.bounded(spread) if spread.exact else flows.fixed(greedy.pattern)
    placed = choice.placement(problem, shares)
    return min((best, active), (score(problem, spread, placed), placed))[1]


class _Flows:
    """Min-cost flows within fair shares."""

    def __init__(self, problem: Problem, shares: Shares) -> None:
        self._problem = problem
        self._shares = shares
        self._stateful = [s for s, stores in enumerate(problem.stores) if stores]
        self._stateless = [s for s, stores in enumerate(problem.stores) if not stores]
        self._members = range(len(problem.members))
        tasks = sum(problem.partitions[s] for s in self._stateful)
        self._some = self._share(tasks)
        self._all = self._share(problem.tasks)

    def free(self) -> Choice:
        """Of all tasks at once, wherever state stores come to be."""
        extras = {s: self._share(rest) for s, rest in enumerate(self._shares.rest)}
        return least_movement(self._problem, self._shares, extras, self._some, self._members, self._all)

    def bounded(self, spread: Spread) -> Choice:
        """Of stateful tasks with as many in each process as make the spread least; then of the others."""
        extras = {s: self._share(self._shares.rest[s]) for s in self._stateful}
        floors = sum(self._shares.floor[s] for s in self._stateful)
        sizes = [len(rows) * floors for rows in self._problem.rows]
        low = [size + extra for size, extra in zip(sizes, spread.low, strict=True)]
        high = [size + extra for size, extra in zip(sizes, spread.high, strict=True)]
        process = self._problem.process
        choice = least_movement(self._problem, self._shares, extras, self._some, process, Bounds(low, high))
        return choice | self._others(choice)

    def fixed(self, pattern: Pattern) -> Choice:
        """Of stateful tasks within a pattern; then of the others."""
        extras = {}
        for subtopology in self._stateful:
            has = [int(subtopology in extra) for extra in pattern.stateful]
            extras[subtopology] = Bounds(has, has)
        choice = least_movement(self._problem, self._shares, extras, self._some, self._members, self._all_upto())
        return choice | self._others(choice)

    def _others(self, choice: Choice) -> Choice:
        """Of stateless tasks, when it is decided how many stateful ones each member gets. It always works out."""
        count = [sum(self._shares.floor[s] for s in self._stateful)] * len(self._members)
        for holders in choice.holders.values():
            for member in holders:
                count[member] += 1
        extras = {s: self._share(self._shares.rest[s]) for s in self._stateless}
        total = Bounds(
            [least - had for least, had in zip(self._all.low, count, strict=True)],
            [most - had for most, had in zip(self._all.high, count, strict=True)],
        )
        nothing = Bounds([0] * len(count), [0] * len(count))
        return least_movement(self._problem, self._shares, extras, nothing, self._members, total)

    def _all_upto(self) -> Bounds:
        return Bounds([0] * len(self._members), [self._problem.tasks] * len(self._members))

    def _share(self, tasks: int) -> Bounds:
        """Bounds of a member's fair share."""
        count = len(self._members)
        return Bounds([tasks // count] * count, [-(-tasks // count)] * count)
