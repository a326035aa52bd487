"""Greedy placement of active tasks: members keep what they may keep, and those with least get the rest.

Stickiness (`stickiness`) counts first: `_keep_with_owners`, then `_keep_with_state`. Then extra tasks are given out and
balanced, where ties are broken as in `tie_breaking`.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from kohort.coordinator.placement.balance_extras import balance_extras
from kohort.coordinator.placement.extra_tasks import ExtraTasks
from kohort.coordinator.placement.fair_shares import FairShares
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.state_store_spread import StateStoreSpread
from kohort.coordinator.placement.stickiness import sticky_tasks
from kohort.coordinator.placement.task_assignment import assign_tasks
from kohort.coordinator.placement.tie_breaking import cheapest_processes, fewest_extra_tasks, highest_values


class GreedyActives:
    """A greedy placement of active tasks.

    It is balanced, and its spread of state stores is the least, or as small as a local search makes it. What stays
    is chosen step by step. Mostly nothing better is possible, which `active_lower_bound` finds out.

    Attributes:
        extra_tasks: the members that get extra tasks.
        active: the member of each task.
    """

    def __init__(self, problem: Problem, shares: FairShares, spread: StateStoreSpread) -> None:
        self._problem = problem
        self._shares = shares
        self._spread = spread
        self._need = list(shares.rest)
        self._sticky = sticky_tasks(problem, shares.floor)
        self._displaced: list[int] = []  # tasks that can't stay with an owner
        self.extra_tasks = ExtraTasks(problem)
        self._keep_with_owners()
        self._keep_with_state()
        self._fill_stateful()
        self._balance_stateful()
        self._fill_stateless()
        self._balance_all()
        self.active = [-1] * problem.tasks
        for subtopology, holders in enumerate(self.extra_tasks.holders()):
            sticky = self._sticky[subtopology]
            assign_tasks(
                problem, subtopology, shares.floor[subtopology], holders, sticky, problem.costs_with_state, self.active
            )

    def _keep_with_owners(self) -> None:
        """Extra tasks for members that had more tasks of a subtopology than the floor; those first that cost most."""
        full_cost, shares, value = self._problem.full_cost, self._shares, ExtraTasks.value
        wanted: list[dict[int, int]] = []  # by subtopology: the members that want an extra task, and its value
        wanted_by = [0] * len(self._problem.members)
        for floor, rest, sticky in zip(shares.floor, shares.rest, self._sticky, strict=True):
            ceiling = floor + (rest > 0)
            wants: dict[int, int] = {}
            for member, tasks in sticky.items():
                if (had := len(tasks)) > floor:
                    if ceiling > floor:
                        wants[member] = value(full_cost[tasks[floor]], True)
                        wanted_by[member] += 1
                    if had > ceiling:
                        self._displaced += tasks[ceiling:]
            wanted.append(wants)
        for subtopology, (rest, wants) in enumerate(zip(shares.rest, wanted, strict=True)):
            if len(wants) > rest:
                for member in highest_values(wants, wanted_by)[rest:]:
                    wanted_by[member] -= 1
                    del wants[member]
                    self._displaced.append(self._sticky[subtopology][member][shares.floor[subtopology]])
            self.extra_tasks.add(subtopology, wants)
            self._need[subtopology] -= len(wants)

    def _keep_with_state(self) -> None:
        """Extra tasks for processes with state of tasks that don't stay with an owner."""
        problem, extra_tasks = self._problem, self.extra_tasks
        room: dict[tuple[int, int], int] = {}
        unowned = [
            task for task in problem.previous_standbys.keys() | problem.lags.keys() if problem.previous_owner[task] < 0
        ]
        for task in sorted(self._displaced + unowned):
            subtopology = problem.subtopology[task]
            sticky, floor = self._sticky[subtopology], self._shares.floor[subtopology]
            for process, cost in cheapest_processes(problem.costs_with_state(task), extra_tasks.counts):
                place = process, subtopology
                if place not in room:  # tasks of the floor need no extra task
                    room[place] = sum(
                        max(0, floor - len(sticky.get(member, ()))) for member in problem.members_of[process]
                    )
                if room[place]:
                    room[place] -= 1
                    break
                if self._need[subtopology] and (member := self._room_for_extra(process, subtopology)) is not None:
                    extra_tasks.add(subtopology, {member: ExtraTasks.value(problem.full_cost[task] - cost, False)})
                    self._need[subtopology] -= 1
                    break

    def _room_for_extra(self, process: int, subtopology: int, allow_more: bool = False) -> int | None:
        """The member of a process that can take a stateful extra task, the one with the fewest; None if none can.

        Members have room for a fair share; with `allow_more` for more, and one is moved on within the process.
        """
        extras = self.extra_tasks.stateful
        if self.extra_tasks.counts[process] >= self._spread.high[process]:
            return None
        able = [
            member
            for member in self._problem.members_of[process]
            if subtopology not in extras[member] and (allow_more or len(extras[member]) < self._shares.stateful_high)
        ]
        return min(able, key=fewest_extra_tasks(extras), default=None)

    def _fill_stateful(self) -> None:
        """Extra tasks to the process with the fewest state stores a member; those with many state stores first."""
        problem, extra_tasks = self._problem, self.extra_tasks
        open_ = [s for s, need in enumerate(self._need) if need and problem.stores[s]]
        if not open_:
            return

        def load(process: int) -> tuple[float, float, int]:
            size = len(problem.members_of[process])
            return extra_tasks.stores[process] / size, extra_tasks.counts[process] / size, process

        heap = [load(process) for process in range(len(problem.members_of))]
        heapify(heap)
        for subtopology in sorted(open_, key=lambda s: (-problem.stores[s], s)):
            full: list[tuple[float, float, int]] = []
            while self._need[subtopology]:
                process = heap[0][-1]
                able = [
                    member for member in problem.members_of[process] if subtopology not in extra_tasks.stateful[member]
                ]
                if not able:
                    full.append(heappop(heap))
                    continue
                extra_tasks.add(subtopology, {min(able, key=fewest_extra_tasks(extra_tasks.stateful)): 0})
                self._need[subtopology] -= 1
                heappop(heap)
                heappush(heap, load(process))
            for entry in full:
                heappush(heap, entry)

    def _balance_stateful(self) -> None:
        extra_tasks, spread, shares, processes = self.extra_tasks, self._spread, self._shares, self._problem.members_of
        self._move_to_state()
        balance_extras(extra_tasks, extra_tasks.stateful, processes, list(extra_tasks.counts), spread.low, spread.high)
        spread.reduce(extra_tasks)
        for members in processes:
            self._balance_members(members, extra_tasks.stateful, shares.stateful, shares.stateful_high)

    def _move_to_state(self) -> None:
        """Moves extra tasks from processes that can spare some to those that lack some, where a task has state there.

        Those first that save most, then those of members with too many; to members with room, as long as there are any.
        """
        problem, extra_tasks, low = self._problem, self.extra_tasks, self._spread.low
        short = {process for process, count in enumerate(extra_tasks.counts) if count < low[process]}
        if not short:
            return
        offers: list[tuple[int, bool, int, int]] = []
        for task in sorted(problem.lags.keys() | problem.previous_standbys.keys()):
            subtopology, owner = problem.subtopology[task], problem.previous_owner[task]
            giver = problem.process[owner]
            if extra_tasks.counts[giver] <= low[giver] or subtopology not in extra_tasks.stateful[owner]:
                continue
            floor = self._shares.floor[subtopology]
            if task in self._sticky[subtopology].get(owner, ())[floor : floor + 1]:  # this task is the extra one
                fair = len(extra_tasks.stateful[owner]) <= self._shares.stateful_high
                for process, cost in problem.costs_with_state(task).items():
                    if process in short:
                        offers.append((cost - problem.full_cost[task], fair, task, process))
        offers.sort()
        for allow_more in (False, True):
            for loss, _, task, process in offers:
                subtopology, owner = problem.subtopology[task], problem.previous_owner[task]
                giver = problem.process[owner]
                if extra_tasks.counts[process] < low[process] and extra_tasks.counts[giver] > low[giver]:
                    member = self._room_for_extra(process, subtopology, allow_more)
                    if member is not None and subtopology in extra_tasks.stateful[owner]:
                        extra_tasks.move(owner, member, subtopology, -loss)

    def _fill_stateless(self) -> None:
        """Stateless extra tasks to the member with the fewest extra tasks of all."""
        extra_tasks = self.extra_tasks
        open_ = [s for s, need in enumerate(self._need) if need]
        if not open_:
            return
        heap = [(self._extra_count(member), member) for member in range(len(self._problem.members))]
        heapify(heap)
        for subtopology in open_:
            served: list[tuple[int, int]] = []
            for _ in range(self._need[subtopology]):
                while subtopology in extra_tasks.stateless[heap[0][1]]:
                    served.append(heappop(heap))
                count, member = heappop(heap)
                extra_tasks.add(subtopology, {member: 0})
                served.append((count + 1, member))
            self._need[subtopology] = 0
            for entry in served:
                heappush(heap, entry)

    def _balance_all(self) -> None:
        members = range(len(self._problem.members))
        self._balance_members(members, self.extra_tasks.stateless, self._shares.total, self._shares.total_high)

    def _balance_members(self, members: Sequence[int], extras: Sequence[dict[int, int]], low: int, high: int) -> None:
        """Balances members by moving stateful or stateless extra tasks."""
        stateful = extras is self.extra_tasks.stateful
        counts = [len(extras[member]) if stateful else self._extra_count(member) for member in members]
        if low <= min(counts) and max(counts) <= high:
            return
        bins = [[member] for member in members]
        balance_extras(self.extra_tasks, extras, bins, counts, [low] * len(bins), [high] * len(bins))

    def _extra_count(self, member: int) -> int:
        return len(self.extra_tasks.stateful[member]) + len(self.extra_tasks.stateless[member])
