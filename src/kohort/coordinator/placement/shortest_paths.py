"""Min-cost flow in Python, for small networks: flow goes along one cheapest path after another."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush


def solve_with_shortest_paths(
    tails: Sequence[int], heads: Sequence[int], capacities: Sequence[int], costs: Sequence[int], supplies: Sequence[int]
) -> list[int]:
    """The cheapest flow, by arc.

    Args:
        tails, heads, capacities, costs: of each arc; no cost is negative.
        supplies: of each node, negative where flow leaves.

    Raises:
        ValueError: there is no flow.
    """
    if sum(supplies) or min(capacities, default=0) < 0:
        raise ValueError("no flow: supplies or bounds contradict each other")
    network = _Residual(len(supplies) + 2)
    for arc in zip(tails, heads, capacities, costs, strict=True):
        network.add(*arc)
    source, sink = len(supplies), len(supplies) + 1
    for node, supply in enumerate(supplies):
        if supply > 0:
            network.add(source, node, supply, 0)
        elif supply < 0:
            network.add(node, sink, -supply, 0)
    wanted = sum(supply for supply in supplies if supply > 0)
    while wanted:
        wanted -= network.send(source, sink)
    return [network.left[2 * arc + 1] for arc in range(len(tails))]


class _Residual:
    """What can still flow: arc n of the network is arc 2n here, and its reverse, which takes flow back, is arc 2n + 1.

    Attributes:
        left: the capacity that is left of each arc.
    """

    def __init__(self, nodes: int) -> None:
        self.left: list[int] = []
        self._ends: list[int] = []
        self._costs: list[int] = []
        self._arcs_of: list[list[int]] = [[] for _ in range(nodes)]
        self._potentials = [0] * nodes  # with them, no arc with capacity left costs less than 0

    def add(self, tail: int, head: int, capacity: int, cost: int) -> None:
        self._arcs_of[tail].append(len(self._ends))
        self._arcs_of[head].append(len(self._ends) + 1)
        self._ends += head, tail
        self._costs += cost, -cost
        self.left += capacity, 0

    def send(self, source: int, sink: int) -> int:
        """Sends as much as possible along a cheapest path, and returns how much."""
        path = []
        via = self._cheapest_path(source, sink)
        node = sink
        while node != source:
            path.append(via[node])
            node = self._ends[via[node] ^ 1]
        amount = min(self.left[arc] for arc in path)
        for arc in path:
            self.left[arc] -= amount
            self.left[arc ^ 1] += amount
        return amount

    def _cheapest_path(self, source: int, sink: int) -> dict[int, int]:
        """The last arc of a cheapest path to each node that is no farther than the sink (Dijkstra's algorithm)."""
        left, ends, costs, potentials = self.left, self._ends, self._costs, self._potentials
        distances: dict[int, int] = {}
        reached = {source: 0}
        via: dict[int, int] = {}
        heap = [(0, source)]
        while heap and sink not in distances:
            distance, node = heappop(heap)
            if node in distances:
                continue
            distances[node] = distance
            for arc in self._arcs_of[node]:
                head = ends[arc]
                if left[arc] and head not in distances:
                    farther = distance + costs[arc] + potentials[node] - potentials[head]
                    if head not in reached or farther < reached[head]:
                        reached[head], via[head] = farther, arc
                        heappush(heap, (farther, head))
        if sink not in distances:
            raise ValueError("no flow: not everything can get to where it is wanted")
        for node, distance in distances.items():  # all others are at least as far as the sink
            potentials[node] += distance - distances[sink]
        return via
