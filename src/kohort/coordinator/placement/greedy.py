"""Keep what may be kept, and give the rest to whoever has least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from heapq import heapify, heappop, heappush

from kohort.coordinator.placement.exchange import level
from kohort.coordinator.placement.pattern import Pattern
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.seating import seat
from kohort.coordinator.placement.shares import Shares
from kohort.coordinator.placement.spread import Spread

__all__ = ["Greedy"]


class Greedy:
    """A greedy placement of active tasks.

    It is balanced, and its spread of state stores is the least, or as small as a local search makes it. What stays
    is chosen step by step. Mostly nothing better is possible, but that is for others to find out.

    Attributes:
        pattern: who gets the extras.
        active: the member of each task.
    """

    def __init__(self, problem: Problem, shares: Shares, spread: Spread) -> None:
        self._problem = problem
        self._shares = shares
        self._spread = spread
        self._need = list(shares.rest)
        self._claims = _claims(problem, shares.floor)
        self._homeless: list[int] = []  # tasks that can't stay with an owner
        self.pattern = Pattern(problem)
        self._keep_with_owners()
        self._keep_at_homes()
        self._fill_stateful()
        self._level_stateful()
        self._fill_stateless()
        self._level_all()
        self.active = [-1] * problem.tasks
        for subtopology, holders in enumerate(self.pattern.holders()):
            claims = self._claims[subtopology]
            seat(problem, subtopology, shares.floor[subtopology], holders, claims, problem.homes, self.active)

    def _keep_with_owners(self) -> None:
        """Extras for members who had more tasks of a subtopology than the floor; the dearest first."""
        whole, shares, value = self._problem.whole, self._shares, Pattern.value
        wanted: list[dict[int, int]] = []  # by subtopology: who wants an extra, and its value
        load = [0] * len(self._problem.members)
        for floor, rest, claims in zip(shares.floor, shares.rest, self._claims, strict=True):
            ceiling = floor + (rest > 0)
            wants: dict[int, int] = {}
            for member, tasks in claims.items():
                if (had := len(tasks)) > floor:
                    if ceiling > floor:
                        wants[member] = value(whole[tasks[floor]], True)
                        load[member] += 1
                    if had > ceiling:
                        self._homeless += tasks[ceiling:]
            wanted.append(wants)
        for subtopology, (rest, wants) in enumerate(zip(shares.rest, wanted, strict=True)):
            if len(wants) > rest:  # those with fewer extras keep theirs
                ranked = sorted(wants, key=lambda member: (-wants[member], load[member], member))
                for member in ranked[rest:]:
                    load[member] -= 1
                    del wants[member]
                    self._homeless.append(self._claims[subtopology][member][shares.floor[subtopology]])
            self.pattern.add(subtopology, wants)
            self._need[subtopology] -= len(wants)

    def _keep_at_homes(self) -> None:
        """Extras for processes that have state of tasks which don't stay with an owner."""
        problem, pattern = self._problem, self.pattern
        room: dict[tuple[int, int], int] = {}
        unowned = [task for task in problem.keepers.keys() | problem.lags.keys() if problem.owner[task] < 0]
        for task in sorted(self._homeless + unowned):
            subtopology = problem.subtopology[task]
            claims, floor = self._claims[subtopology], self._shares.floor[subtopology]
            homes = problem.homes(task)
            for process, cost in sorted(homes.items(), key=lambda home: (home[1], pattern.counts[home[0]], home[0])):
                place = process, subtopology
                if place not in room:  # the floor is everyone's, it needs no extra
                    room[place] = sum(max(0, floor - len(claims.get(row, ()))) for row in problem.rows[process])
                if room[place]:
                    room[place] -= 1
                    break
                if self._need[subtopology] and (row := self._room_for_extra(process, subtopology)) is not None:
                    pattern.add(subtopology, {row: Pattern.value(problem.whole[task] - cost, False)})
                    self._need[subtopology] -= 1
                    break

    def _room_for_extra(self, process: int, subtopology: int, crowded: bool = False) -> int | None:
        """Who of a process can take a stateful extra, the one with fewest of all; None if nobody can.

        Nobody has room for more than a fair share, but crowded they do: one is handed on within the process then.
        """
        extras = self.pattern.stateful
        if self.pattern.counts[process] >= self._spread.high[process]:
            return None
        able = [
            row
            for row in self._problem.rows[process]
            if subtopology not in extras[row] and (crowded or len(extras[row]) < self._shares.stateful_high)
        ]
        return min(able, key=lambda row: (len(extras[row]), row), default=None)

    def _fill_stateful(self) -> None:
        """Extras to the process with the fewest state stores a member, those with many state stores first."""
        problem, pattern = self._problem, self.pattern
        open_ = [s for s, need in enumerate(self._need) if need and problem.stores[s]]
        if not open_:
            return

        def load(process: int) -> tuple[float, float, int]:
            size = len(problem.rows[process])
            return pattern.stores[process] / size, pattern.counts[process] / size, process

        heap = [load(process) for process in range(len(problem.rows))]
        heapify(heap)
        for subtopology in sorted(open_, key=lambda s: (-problem.stores[s], s)):
            full: list[tuple[float, float, int]] = []
            while self._need[subtopology]:
                process = heap[0][-1]
                able = [row for row in problem.rows[process] if subtopology not in pattern.stateful[row]]
                if not able:
                    full.append(heappop(heap))
                    continue
                pattern.add(subtopology, {min(able, key=lambda row: (len(pattern.stateful[row]), row)): 0})
                self._need[subtopology] -= 1
                heappop(heap)
                heappush(heap, load(process))
            for entry in full:
                heappush(heap, entry)

    def _level_stateful(self) -> None:
        pattern, spread, shares, rows = self.pattern, self._spread, self._shares, self._problem.rows
        self._bring_home()
        level(pattern, pattern.stateful, rows, list(pattern.counts), spread.low, spread.high)
        spread.reduce(pattern)
        for members in rows:
            self._level_members(members, pattern.stateful, shares.stateful, shares.stateful_high)

    def _bring_home(self) -> None:
        """Extras for processes that lack some, from those with more than they need, where that brings a task home.

        Those first that save most, then those of members with too many; to members with room, as long as there are any.
        """
        problem, pattern, low = self._problem, self.pattern, self._spread.low
        short = {process for process, count in enumerate(pattern.counts) if count < low[process]}
        if not short:
            return
        offers: list[tuple[int, bool, int, int]] = []
        for task in sorted(problem.lags.keys() | problem.keepers.keys()):
            subtopology, owner = problem.subtopology[task], problem.owner[task]
            giver = problem.process[owner]
            if pattern.counts[giver] <= low[giver] or subtopology not in pattern.stateful[owner]:
                continue
            floor = self._shares.floor[subtopology]
            if task in self._claims[subtopology].get(owner, ())[floor : floor + 1]:  # the extra is there for that task
                fair = len(pattern.stateful[owner]) <= self._shares.stateful_high
                for process, cost in problem.homes(task).items():
                    if process in short:
                        offers.append((cost - problem.whole[task], fair, task, process))
        offers.sort()
        for crowded in (False, True):
            for loss, _, task, process in offers:
                subtopology, owner = problem.subtopology[task], problem.owner[task]
                giver = problem.process[owner]
                if pattern.counts[process] < low[process] and pattern.counts[giver] > low[giver]:
                    row = self._room_for_extra(process, subtopology, crowded)
                    if row is not None and subtopology in pattern.stateful[owner]:
                        pattern.move(owner, row, subtopology, -loss)

    def _fill_stateless(self) -> None:
        """Extras to the member with the fewest in all."""
        pattern = self.pattern
        open_ = [s for s, need in enumerate(self._need) if need]
        if not open_:
            return
        heap = [(self._extras(member), member) for member in range(len(self._problem.members))]
        heapify(heap)
        for subtopology in open_:
            served: list[tuple[int, int]] = []
            for _ in range(self._need[subtopology]):
                while subtopology in pattern.stateless[heap[0][1]]:
                    served.append(heappop(heap))
                count, member = heappop(heap)
                pattern.add(subtopology, {member: 0})
                served.append((count + 1, member))
            self._need[subtopology] = 0
            for entry in served:
                heappush(heap, entry)

    def _level_all(self) -> None:
        members = range(len(self._problem.members))
        self._level_members(members, self.pattern.stateless, self._shares.total, self._shares.total_high)

    def _level_members(self, members: Sequence[int], extras: Sequence[dict[int, int]], low: int, high: int) -> None:
        """Level members, by handing over stateful or stateless extras."""
        stateful = extras is self.pattern.stateful
        counts = [len(extras[member]) if stateful else self._extras(member) for member in members]
        if low <= min(counts) and max(counts) <= high:
            return
        bins = [[member] for member in members]
        level(self.pattern, extras, bins, counts, [low] * len(bins), [high] * len(bins))

    def _extras(self, member: int) -> int:
        return len(self.pattern.stateful[member]) + len(self.pattern.stateless[member])


def _claims(problem: Problem, floors: Sequence[int]) -> list[dict[int, list[int]]]:
    """By subtopology and member: the tasks that it had active before.

    Those come first that cost most elsewhere, so the last ones are given up. A task that several had is the claim of
    the one with the fewest claims.
    """
    owner = problem.owner
    if problem.rivals:
        load = Counter(owner)
        load.update(rival for rivals in problem.rivals.values() for rival in rivals[1:])
        owner = list(owner)
        for task, rivals in problem.rivals.items():
            owner[task] = min(rivals, key=lambda rival: (load[rival], rival))
    claims: list[dict[int, list[int]]] = [{} for _ in problem.names]
    for task, (member, subtopology) in enumerate(zip(owner, problem.subtopology, strict=True)):
        if member >= 0:
            of = claims[subtopology]
            if member in of:
                of[member].append(task)
            else:
                of[member] = [task]
    for stores, floor, of in zip(problem.stores, floors, claims, strict=True):
        for member, tasks in of.items():
            if stores and len(tasks) > max(1, floor):
                elsewhere = partial(_cost_elsewhere, problem, problem.process[member])
                tasks.sort(key=lambda task: (-elsewhere(task), -problem.whole[task]))
    return claims


def _cost_elsewhere(problem: Problem, here: int, task: int) -> int:
    """The least cost of restoring a task in another process."""
    homes = problem.homes(task)
    return min((cost for process, cost in homes.items() if process != here), default=problem.whole[task])
