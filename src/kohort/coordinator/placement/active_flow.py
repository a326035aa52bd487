"""The least movement of active tasks, as min-cost flows: what a task costs on a member is its stickiness."""

from __future__ import annotations

from collections import Counter
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
        self._any = _Bounds([0] * len(self._members), [problem.tasks] * len(self._members))

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
        solution = _least_movement(self._problem, self._shares, extras, self._some, self._members, self._any)
        return solution | self._others(solution)

    def with_holders(self, subtopology: int, holders: Sequence[int]) -> ActiveSolution:
        """Of one subtopology, with an extra task for each of these members."""
        has = [int(member in holders) for member in self._members]
        extras = {subtopology: _Bounds(has, has)}
        return _least_movement(self._problem, self._shares, extras, self._any, self._members, self._any)

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
    if not extras:
        return ActiveSolution()
    partitions, subtopology_of = problem.partitions, problem.subtopology
    known = [
        task
        for subtopology in extras
        for first in [problem.first_task[subtopology]]
        for task in range(first, first + partitions[subtopology])
        if problem.previous_owner[task] >= 0 or problem.costs_with_state(task)
    ]
    owned = [(task, owner) for task in known for owner in problem.previous_owners(task)]
    with_state = [(task, process, cost) for task in known for process, cost in _useful_costs(problem, task)]
    unknown = Counter({subtopology: partitions[subtopology] for subtopology in extras})
    unknown.subtract(subtopology_of[task] for task in known)

    network = MinCostFlow(problem.tasks)
    node_of = dict(zip(known, network.nodes(len(known), supply=1), strict=True))
    anyone = {subtopology: network.nodes(1, supply=unknown[subtopology])[0] for subtopology in extras}
    some = network.nodes(len(problem.members))
    totals = network.nodes(len(total.low))
    (sink,) = network.nodes(1, supply=-sum(partitions[subtopology] for subtopology in extras))
    # By subtopology and process, and by subtopology and member: the node that flow to it comes from.
    to_process = {subtopology: [node] * len(problem.members_of) for subtopology, node in anyone.items()}
    has_state_at = sorted({(subtopology_of[task], process) for task, process, _ in with_state})
    at_state = network.nodes(len(has_state_at))
    for (subtopology, process), node in zip(has_state_at, at_state, strict=True):
        to_process[subtopology][process] = node
    to_member = {subtopology: [nodes[at] for at in problem.process] for subtopology, nodes in to_process.items()}
    has_owner_at = sorted({(subtopology_of[task], owner) for task, owner in owned})
    at_owner = network.nodes(len(has_owner_at))
    before_owner = [to_member[subtopology][owner] for subtopology, owner in has_owner_at]
    for (subtopology, owner), node in zip(has_owner_at, at_owner, strict=True):
        to_member[subtopology][owner] = node

    kept = network.arcs(
        [node_of[task] for task, _ in owned], [to_member[subtopology_of[task]][owner] for task, owner in owned], 1
    )
    to_state = network.arcs(
        [node_of[task] for task, _, _ in with_state],
        [to_process[subtopology_of[task]][process] for task, process, _ in with_state],
        1,
        restore=[cost for _, _, cost in with_state],
        moves=1,
    )
    to_anyone = [anyone[subtopology_of[task]] for task in known]
    full_costs = [problem.full_cost[task] for task in known]
    network.arcs(list(node_of.values()), to_anyone, 1, restore=full_costs, moves=1)
    network.arcs([anyone[subtopology] for subtopology, _ in has_state_at], at_state, problem.tasks)
    network.arcs(before_owner, at_owner, problem.tasks)
    to_total = [totals[group] for group in groups]
    quotas: dict[int, range] = {}
    for subtopology, bounds in extras.items():
        floor = shares.floor[subtopology]
        low, high = ([floor + extra for extra in bound] for bound in (bounds.low, bounds.high))
        heads = some if problem.stores[subtopology] else to_total
        quotas[subtopology] = network.arcs(to_member[subtopology], heads, high, low)
    network.arcs(some, to_total, stateful.high, stateful.low)
    network.arcs(totals, [sink] * len(totals), total.high, total.low)

    flows = network.solve()
    return ActiveSolution(
        {
            subtopology: [member for member, arc in enumerate(quota) if flows[arc] > shares.floor[subtopology]]
            for subtopology, quota in quotas.items()
        },
        {task: owner for (task, owner), arc in zip(owned, kept, strict=True) if flows[arc]},
        {task: process for (task, process, _), arc in zip(with_state, to_state, strict=True) if flows[arc]},
    )


def _useful_costs(problem: Problem, task: int) -> Iterator[tuple[int, int]]:
    """Processes with state of a task, and its cost there; without those that have no member but an owner."""
    owners = problem.previous_owners(task)
    for process, cost in problem.costs_with_state(task).items():
        if len(problem.members_of[process]) > 1 or problem.members_of[process][0] not in owners:
            yield process, cost
