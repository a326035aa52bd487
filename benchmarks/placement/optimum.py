"""How few tasks must move: a minimum-cost flow of its own, which shares nothing with the assignors."""

from __future__ import annotations

from collections import Counter

import numpy as np
from ortools.graph.python import min_cost_flow

from kohort.coordinator.placement import Group


def least_moves(group: Group) -> int:
    """The fewest active tasks that change their owner, where each member gets the floor or the ceiling of its share.

    Units of flow are tasks. They go from members through "with state" and "without" to subtopologies, and cost 1 where
    the member didn't have the task before. Which task it is makes no difference: what a member had nobody else had.
    Floors are kept by making the units below them cheaper than any number of moves.
    """
    if not group.members:
        return 0
    flow = _Flow(len(group.members), len(group.subtopologies))
    had = Counter((member.id, task.subtopology) for member in group.members for task in member.active)
    total = sum(subtopology.partitions for subtopology in group.subtopologies)
    stateful = sum(subtopology.partitions for subtopology in group.subtopologies if subtopology.state_stores)
    everybody = np.arange(len(group.members))
    flow.shared(np.full(len(everybody), flow.source), flow.member(everybody), total)
    flow.shared(flow.member(everybody), flow.kind(everybody, 1), stateful)
    flow.free(flow.member(everybody), flow.kind(everybody, 0), np.full(len(everybody), total))
    for number, subtopology in enumerate(group.subtopologies):
        kept = np.array([had[member.id, subtopology.id] for member in group.members])
        start = flow.kind(everybody, int(subtopology.state_stores > 0))
        middle = flow.share(everybody, number)
        flow.shared(start, middle, subtopology.partitions)
        end = np.full(len(everybody), flow.subtopology(number))
        flow.free(middle, end, kept)
        flow.free(middle, end, np.full(len(everybody), subtopology.partitions), cost=1)
        flow.free(end[:1], np.array([flow.sink]), np.array([subtopology.partitions]))
    started = total - sum(had.values())
    return flow.cost(total) - started


class _Flow:
    """A network; its nodes are numbers."""

    def __init__(self, members: int, subtopologies: int) -> None:
        self._members = members
        self._subtopologies = subtopologies
        self._solver = min_cost_flow.SimpleMinCostFlow()
        self._cheap = 10_000_000
        self._floors = 0
        self.source, self.sink = 0, 1

    def member(self, members: np.ndarray) -> np.ndarray:
        return 2 + members

    def kind(self, members: np.ndarray, stateful: int) -> np.ndarray:
        return 2 + (1 + stateful) * self._members + members

    def share(self, members: np.ndarray, subtopology: int) -> np.ndarray:
        return 2 + (3 + subtopology) * self._members + members

    def subtopology(self, number: int) -> int:
        return 2 + (3 + self._subtopologies) * self._members + number

    def shared(self, starts: np.ndarray, ends: np.ndarray, tasks: int) -> None:
        """Arcs that carry the floor or the ceiling of so many tasks each."""
        floor, rest = divmod(tasks, self._members)
        self.free(starts, ends, np.full(len(starts), floor), -self._cheap)
        self._floors += floor * len(starts)
        if rest:
            self.free(starts, ends, np.full(len(starts), 1))

    def free(self, starts: np.ndarray, ends: np.ndarray, capacities: np.ndarray, cost: int = 0) -> None:
        """Arcs that carry at most so much each."""
        self._solver.add_arcs_with_capacity_and_unit_cost(starts, ends, capacities, np.full(len(starts), cost))

    def cost(self, tasks: int) -> int:
        """The least cost of so many tasks from source to sink, without what keeps the floors."""
        self._solver.set_nodes_supplies(np.array([self.source, self.sink]), np.array([tasks, -tasks]))
        status = self._solver.solve()
        if status != self._solver.OPTIMAL:
            raise RuntimeError(f"the flow isn't solved: {status}")
        return int(self._solver.optimal_cost()) + self._floors * self._cheap
