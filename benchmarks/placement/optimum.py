"""How little must be restored and moved: a minimum-cost flow of its own, which shares nothing with the assignors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from ortools.graph.python import min_cost_flow

from kohort.coordinator.placement import Group, TaskId

_STORE = 100_000
"""The cost of a state store; a move costs 1, and there are fewer moves than this."""

_FLOOR = 10_000_000_000
"""What a unit below a floor is cheaper by; more than all that can be restored and moved."""


@dataclass(frozen=True)
class Least:
    """The fewest state stores to restore, and, with these, the fewest tasks that change their owner."""

    stores: int
    moves: int


def least(group: Group) -> Least:
    """The least for a group in which each member gets the floor or the ceiling of its share; nothing is known of lags.

    Units of flow are tasks. They go from members through "with state" or "without" and through the subtopology to a
    task: to one that the member had, to one that its process has a copy of, or to any. Floors are kept by making
    the units below them cheaper than anything else.
    """
    flow = _Flow()
    everybody = len(group.members)
    parts = group.subtopologies
    stores = {part.id: part.state_stores for part in parts}
    total, stateful = (
        sum(part.partitions for part in parts),
        sum(part.partitions for part in parts if part.state_stores),
    )
    members, with_state, without = (flow.nodes(everybody) for _ in range(3))
    source, sink = flow.nodes(1)[0], flow.nodes(1)[0]
    flow.shared(np.full(everybody, source), members, total)
    flow.shared(members, with_state, stateful)
    flow.arcs(members, without, total)
    shares = {}
    for part in parts:
        shares[part.id] = flow.nodes(everybody)
        flow.shared(with_state if part.state_stores else without, shares[part.id], part.partitions)
    tasks = {part.id: flow.nodes(part.partitions) for part in parts}
    owners, copies = _had(group)
    for part in parts:
        nodes, anybody = tasks[part.id], flow.nodes(1)
        flow.arcs(shares[part.id], np.full(everybody, anybody[0]), part.partitions)
        flow.arcs(np.full(part.partitions, anybody[0]), nodes, 1, 1 + _STORE * stores[part.id])
        flow.arcs(nodes, np.full(part.partitions, sink), 1)
    for task, owner in owners.items():
        flow.arcs(shares[task.subtopology][owner : owner + 1], tasks[task.subtopology][task.partition :][:1], 1)
    rows = _rows(group)
    for process, kept in copies.items():
        for name, numbers in kept.items():
            here = flow.nodes(1)
            flow.arcs(shares[name][rows[process]], np.full(len(rows[process]), here[0]), total)
            flow.arcs(np.full(len(numbers), here[0]), tasks[name][sorted(numbers)], 1, 1)
    cost = flow.cost(source, sink, total) - (total - len(owners))  # tasks that nobody had don't move
    return Least(*divmod(cost, _STORE))


def _rows(group: Group) -> dict[str, list[int]]:
    """The members of each process, by number."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for number, member in enumerate(group.members):
        rows[member.process].append(number)
    return rows


def _had(group: Group) -> tuple[dict[TaskId, int], dict[str, defaultdict[str, set[int]]]]:
    """Who had which task active, and of which stateful tasks each process has a copy, by subtopology."""
    stateful = {part.id for part in group.subtopologies if part.state_stores}
    owners: dict[TaskId, int] = {}
    copies: defaultdict[str, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for number, member in enumerate(group.members):
        owners.update(dict.fromkeys(member.active, number))
        for task in member.active | member.standby:
            if task.subtopology in stateful:
                copies[member.process][task.subtopology].add(task.partition)
    return owners, dict(copies)


class _Flow:
    """A network; its nodes are numbers."""

    def __init__(self) -> None:
        self._solver = min_cost_flow.SimpleMinCostFlow()
        self._nodes = 0
        self._floors = 0

    def nodes(self, count: int) -> np.ndarray:
        """New nodes."""
        self._nodes += count
        return np.arange(self._nodes - count, self._nodes)

    def arcs(self, starts: np.ndarray, ends: np.ndarray, capacity: int, cost: int = 0) -> None:
        """Arcs that carry at most so much each."""
        sizes = np.full(len(starts), capacity), np.full(len(starts), cost)
        self._solver.add_arcs_with_capacity_and_unit_cost(starts, ends, *sizes)

    def shared(self, starts: np.ndarray, ends: Sequence[int] | np.ndarray, tasks: int) -> None:
        """Arcs that carry the floor or the ceiling of so many tasks each."""
        floor, rest = divmod(tasks, len(starts))
        self.arcs(starts, np.asarray(ends), floor, -_FLOOR)
        self._floors += floor * len(starts)
        if rest:
            self.arcs(starts, np.asarray(ends), 1)

    def cost(self, source: int, sink: int, tasks: int) -> int:
        """The least cost of so many tasks from source to sink, without what keeps the floors."""
        self._solver.set_nodes_supplies(np.array([source, sink]), np.array([tasks, -tasks]))
        status = self._solver.solve()
        if status != self._solver.OPTIMAL:
            raise RuntimeError(f"the flow isn't solved: {status}")
        return int(self._solver.optimal_cost()) + self._floors * _FLOOR
