"""The least movement of active tasks, as min-cost flows: what a task costs on a member is its stickiness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kohort.coordinator.placement.active_solution import ActiveSolution
from kohort.coordinator.placement.extra_tasks import ExtraTasks
from kohort.coordinator.placement.fair_shares import FairShares
from kohort.coordinator.placement.min_cost_flow import MinCostFlow
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.state_store_spread import StateStoreSpread


class ActiveFlows:
    """Placements of active tasks within fair shares, with the least to restore and among that the fewest moves."""

    def __init__(self, problem: Problem, shares: FairShares) -> None:
        self._problem = problem
        self._shares = shares
        self._stateful = [s for s, stores in enumerate(problem.stores) if stores]
        self._stateless = [s for s, stores in enumerate(problem.stores) if not stores]
        self._members = range(len(problem.members))
        tasks = sum(problem.partitions[s] for s in self._stateful)
        self._some = self._share(tasks)
        self._all = self._share(problem.tasks)

    def ignoring_stores(self) -> ActiveSolution:
        """Without regard to the spread of state stores."""
        extras = {s: self._share(rest) for s, rest in enumerate(self._shares.rest)}
        return _least_movement(self._problem, self._shares, extras, self._some, self._members, self._all)

    def with_least_spread(self, spread: StateStoreSpread) -> ActiveSolution:
        """With numbers of stateful tasks in each process that make the spread of state stores least, if it is exact.

        Stateless tasks come second, so more of them may move than necessary.
        """
        extras = {s: self._share(self._shares.rest[s]) for s in self._stateful}
        floors = sum(self._shares.floor[s] for s in self._stateful)
        sizes = [len(members) * floors for members in self._problem.members_of]
        low = [size + extra for size, extra in zip(sizes, spread.low, strict=True)]
        high = [size + extra for size, extra in zip(sizes, spread.high, strict=True)]
        process = self._problem.process
        solution = _least_movement(self._problem, self._shares, extras, self._some, process, _Bounds(low, high))
        return solution | self._others(solution)

    def with_extra_tasks(self, extra_tasks: ExtraTasks) -> ActiveSolution:
        """With these stateful extra tasks on each member; then the stateless tasks."""
        extras = {}
        for subtopology in self._stateful:
            has = [int(subtopology in extra) for extra in extra_tasks.stateful]
            extras[subtopology] = _Bounds(has, has)
        any_ = _Bounds([0] * len(self._members), [self._problem.tasks] * len(self._members))
        solution = _least_movement(self._problem, self._shares, extras, self._some, self._members, any_)
        return solution | self._others(solution)

    def _others(self, solution: ActiveSolution) -> ActiveSolution:
        """Of stateless tasks, after each member has its number of stateful ones. There always is a solution."""
        count = [sum(self._shares.floor[s] for s in self._stateful)] * len(self._members)
        for holders in solution.holders.values():
            for member in holders:
                count[member] += 1
        extras = {s: self._share(self._shares.rest[s]) for s in self._stateless}
        total = _Bounds(
            [least - had for least, had in zip(self._all.low, count, strict=True)],
            [most - had for most, had in zip(self._all.high, count, strict=True)],
        )
        nothing = _Bounds([0] * len(count), [0] * len(count))
        return _least_movement(self._problem, self._shares, extras, nothing, self._members, total)

    def _share(self, tasks: int) -> _Bounds:
        count = len(self._members)
        return _Bounds([tasks // count] * count, [-(-tasks // count)] * count)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Bounds, both inclusive, for each member or group of members."""

    low: Sequence[int]
    high: Sequence[int]


def _least_movement(
    problem: Problem,
    shares: FairShares,
    extras: dict[int, _Bounds],
    stateful: _Bounds,
    groups: Sequence[int],
    total: _Bounds,
) -> ActiveSolution:
    """Decides which tasks stay, so that the least is restored, and among that the fewest tasks move.

    The flow goes from tasks to members, through every sum that has bounds:

        task ---- with an owner: 0 ------------------> quota --> stateful --> total --> sink
          | '---- where state is: its cost --> process --^ ^
          '------ anywhere: its full cost ---> anyone -----'

    Each task has arcs only to where it costs less than elsewhere; "anyone" is one node a subtopology. A quota is a node
    only where a member may keep something, and a process only where there is state, each for one subtopology; otherwise
    the arcs skip them. So there are about as many arcs as members times subtopologies, not as members times tasks.

    Bounds nest, of a subtopology in all stateful ones in all, so the cheapest flow is one of integers.

    Args:
        extras: for each subtopology to be placed: bounds of every member's extra tasks, 0 or 1.
        stateful: bounds of every member's tasks of stateful subtopologies.
        groups: for each member the group that its tasks are counted in, numbered from 0.
        total: bounds of each group's tasks.

    Raises:
        ValueError: the bounds can't be met.
    """
    import numpy as np

    if not extras:
        return ActiveSolution()
    columns = {subtopology: column for column, subtopology in enumerate(extras)}
    known = [
        task
        for subtopology in extras
        for first in [problem.first_task[subtopology]]
        for task in range(first, first + problem.partitions[subtopology])
        if problem.previous_owner[task] >= 0 or problem.costs_with_state(task)
    ]
    owned = [(n, owner) for n, task in enumerate(known) for owner in problem.previous_owners(task)]
    with_state = [(n, process, cost) for n, task in enumerate(known) for process, cost in _useful_costs(problem, task)]
    owned_task, owner = np.array(owned, np.int64).reshape(-1, 2).T
    state_task, state_process, state_cost = np.array(with_state, np.int64).reshape(-1, 3).T
    column_of = np.array([columns[problem.subtopology[task]] for task in known], np.int64)
    partitions = np.array([problem.partitions[subtopology] for subtopology in extras], np.int64)
    floor = np.array([shares.floor[subtopology] for subtopology in extras], np.int64)[:, None]
    has_state = np.array([[problem.stores[subtopology] > 0] for subtopology in extras])

    network = MinCostFlow(problem.tasks)
    tasks = network.nodes(len(known))
    anyone = network.nodes(len(columns))
    some = network.nodes(len(problem.members))
    totals = network.nodes(len(total.low))
    sink = network.nodes(1)
    # By subtopology and process, and by subtopology and member: the node that flow to it comes from.
    to_process = np.repeat(anyone[:, None], len(problem.members_of), axis=1)
    has_state_at = tuple(np.unique(np.stack([column_of[state_task], state_process]), axis=1))
    to_process[has_state_at] = network.nodes(len(has_state_at[0]))
    to_member = to_process[:, problem.process]
    has_owner_at = tuple(np.unique(np.stack([column_of[owned_task], owner]), axis=1))
    before_owner = to_member[has_owner_at]
    to_member[has_owner_at] = network.nodes(len(has_owner_at[0]))

    network.supply(tasks, 1)
    network.supply(anyone, partitions - np.bincount(column_of, minlength=len(columns)))
    network.supply(sink, -partitions.sum())
    kept = network.arcs(tasks[owned_task], to_member[column_of[owned_task], owner], 1)
    to_state = network.arcs(
        tasks[state_task], to_process[column_of[state_task], state_process], 1, restore=state_cost, moves=1
    )
    network.arcs(tasks, anyone[column_of], 1, restore=[problem.full_cost[task] for task in known], moves=1)
    network.arcs(anyone[has_state_at[0]], to_process[has_state_at], problem.tasks)
    network.arcs(before_owner, to_member[has_owner_at], problem.tasks)
    low = floor + np.array([bounds.low for bounds in extras.values()])
    high = floor + np.array([bounds.high for bounds in extras.values()])
    group = totals[np.array(groups)]
    quota = network.arcs(to_member, np.where(has_state, some, group), high, low)
    network.arcs(some, group, stateful.high, stateful.low)
    network.arcs(totals, sink, total.high, total.low)

    flows = network.solve()
    holders = flows[quota].reshape(low.shape) > floor
    return ActiveSolution(
        {subtopology: np.flatnonzero(holders[column]).tolist() for subtopology, column in columns.items()},
        {known[owned[n][0]]: owned[n][1] for n in np.flatnonzero(flows[kept]).tolist()},
        {known[with_state[n][0]]: with_state[n][1] for n in np.flatnonzero(flows[to_state]).tolist()},
    )


def _useful_costs(problem: Problem, task: int) -> Iterator[tuple[int, int]]:
    """Processes with state of a task, and its cost there; without those that have no member but an owner."""
    owners = problem.previous_owners(task)
    for process, cost in problem.costs_with_state(task).items():
        if len(problem.members_of[process]) > 1 or problem.members_of[process][0] not in owners:
            yield process, cost
