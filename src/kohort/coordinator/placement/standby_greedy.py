"""Greedy placement of standbys.

Racks count first (`standby_racks`), then balance, then stickiness; ties are broken by `tie_breaking.standby_rank`.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.standby_racks import Racks
from kohort.coordinator.placement.tie_breaking import cheapest_processes, standby_rank

_Rank = tuple[int, int, int, int]


class GreedyStandbys:
    """A greedy placement of standbys.

    First, each is in a process that has no other copy of the task, and in racks as different as possible. Then members
    get equally many. Then standbys stay where they are, and others go where the least is to be restored.

    Attributes:
        copies: the members with a standby of each stateful task; empty if there are no standbys.
    """

    def __init__(self, problem: Problem, active: Sequence[int], racks: Racks) -> None:
        self._problem = problem
        self._active = active
        self._racks = racks
        self.copies: dict[int, list[int]] = {}
        self._load = [0] * len(problem.members)
        self._stateful = [0] * len(problem.members)
        if problem.standbys:
            for task, subtopology in enumerate(problem.subtopology):
                if problem.stores[subtopology]:
                    self.copies[task] = []
                    self._stateful[active[task]] += 1
        if self.copies:
            self._floor, rest = divmod(len(self.copies) * problem.standbys, len(problem.members))
            self._ceiling = self._floor + (rest > 0)
            self._keep()
            self._fill()
            self._balance()

    def _taken(self, task: int) -> list[int]:
        """Processes with a copy of the task, that of the active task first."""
        process = self._problem.process
        return [process[self._active[task]], *[process[member] for member in self.copies[task]]]

    def _keep(self) -> None:
        """Leaves standbys where they are, and puts others where there is state; `_balance` corrects the numbers."""
        problem, racks, load = self._problem, self._racks, self._load
        process, kind = problem.process, racks.kind
        for task, members in self.copies.items():
            taken = [process[self._active[task]]]
            previous = problem.previous_standbys.get(task, ())
            if task not in problem.lags:  # all copies have caught up
                for holder in previous:
                    at = process[holder]
                    if len(taken) <= problem.standbys and at not in taken and racks.fits(taken, kind[at]):
                        members.append(holder)
                        taken.append(at)
                        load[holder] += 1
            if len(taken) > problem.standbys or not problem.full_cost[task]:
                continue
            for at, _ in cheapest_processes(problem.costs_with_state(task)):
                if len(taken) <= problem.standbys and at not in taken and racks.fits(taken, kind[at]):
                    here = [holder for holder in previous if process[holder] == at]
                    member = here[0] if here else min(problem.members_of[at], key=self._rank)
                    members.append(member)
                    taken.append(at)
                    load[member] += 1

    def _rank(self, member: int) -> _Rank:
        return standby_rank(member, self._load[member], self._stateful[member])

    def _fill(self) -> None:
        """Puts missing standbys on the members with the fewest."""
        problem, racks = self._problem, self._racks
        heaps: list[list[_Rank]] = [[] for _ in range(racks.kinds)]
        for member, process in enumerate(problem.process):
            heaps[racks.kind[process]].append(self._rank(member))
        for heap in heaps:
            heapify(heap)
        order = [(heap[0], kind) for kind, heap in enumerate(heaps)]
        heapify(order)
        for task, members in self.copies.items():
            while len(members) < problem.standbys:
                taken = self._taken(task)
                passed: list[tuple[_Rank, int]] = []
                found = None
                while found is None:
                    top = heappop(order)
                    if racks.fits(taken, top[1]):
                        found = _first_outside(heaps[top[1]], taken, problem.process)
                    if found is None:
                        passed.append(top)
                members.append(found)
                self._load[found] += 1
                heappush(heaps[top[1]], self._rank(found))
                heappush(order, (heaps[top[1]][0], top[1]))
                for entry in passed:
                    heappush(order, entry)

    def _balance(self) -> None:
        """Moves standbys from members with many to members with few, the cheapest first, as far as they fit there."""
        load = self._load
        short = [member for member, count in enumerate(load) if count < self._floor]
        long = [member for member, count in enumerate(load) if count > self._ceiling]
        if short:
            self._move(long, self._ceiling, short, self._floor)
            able = [member for member, count in enumerate(load) if count > self._floor]
            self._move(able, self._floor, [member for member in short if load[member] < self._floor], self._floor)
        if long:
            room = [member for member, count in enumerate(load) if count < self._ceiling]
            self._move(long, self._ceiling, room, self._ceiling)

    def _move(self, givers: Sequence[int], least: int, takers: Sequence[int], most: int) -> None:
        """Givers go down to the least number of standbys, takers up to the most, as far as there are both."""
        load, process, bound = self._load, self._problem.process, self._racks.bound
        giving = {member for member in givers if load[member] > least}
        offers = [
            (self._loss(task, at), task, at) for task, members in self.copies.items() for at in members if at in giving
        ]
        offers.sort()
        hopeless: set[int] = set()  # kinds of processes that nothing fits in, so that not all are tried
        for taker in sorted(takers, key=self._rank):
            if self._racks.kind[process[taker]] in hopeless:
                continue
            left: list[tuple[int, int, int]] = []
            rest = iter(offers)
            before = load[taker]
            while load[taker] < most and (offer := next(rest, None)):
                _, task, giver = offer
                if load[giver] <= least:
                    continue
                here, there = process[taker], process[giver]
                others = [each for each in self._taken(task) if each != there]
                if here not in others and bound([*others, here]) <= bound([*others, there]):
                    self.copies[task][self.copies[task].index(giver)] = taker
                    load[giver] -= 1
                    load[taker] += 1
                else:
                    left.append(offer)
            if load[taker] == before:
                hopeless.add(self._racks.kind[process[taker]])
            offers = left + list(rest)

    def _loss(self, task: int, member: int) -> int:
        """What moving a standby away loses: state that it needn't restore, and then its place."""
        problem = self._problem
        full_cost, keeps = problem.full_cost[task], member in problem.previous_standbys.get(task, ())
        if keeps and task not in problem.lags:
            return 2 * full_cost + 1
        return 2 * (full_cost - problem.costs_with_state(task).get(problem.process[member], full_cost)) + keeps


def _first_outside(heap: list[_Rank], taken: Sequence[int], process: Sequence[int]) -> int | None:
    """Removes the first member whose process isn't taken from a heap, and returns it."""
    passed: list[_Rank] = []
    found = None
    while heap and found is None:
        entry = heappop(heap)
        if process[entry[-1]] in taken:
            passed.append(entry)
        else:
            found = entry[-1]
    for entry in passed:
        heappush(heap, entry)
    return found
