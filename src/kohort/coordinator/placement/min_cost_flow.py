"""Min-cost flow with lower bounds: on OR-Tools, or, if it is missing and the network is small, in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kohort.coordinator.placement.or_tools import is_installed, require_or_tools
from kohort.coordinator.placement.shortest_paths import solve_with_shortest_paths

_RANGE: Final = 2**58  # bound of costs times nodes, so that the solver's numbers don't overflow
_SMALL: Final = 1_000_000  # arcs times units; Python takes about half a second for so many

_Numbers = Sequence[int] | int


class MinCostFlow:
    """A network of nodes and arcs, and supplies.

    Arcs have costs a unit of three kinds: unevenness counts most, then state to restore, then moves. These are weighted
    so that no sum of a lesser kind outweighs a greater one. If costs of restoring are too large for that, the last bits
    of all of them are dropped; but a cost above 0 stays above 0.

    Args:
        units: units of flow; each has one arc at most with state to restore, and one at most with a move.
    """

    def __init__(self, units: int) -> None:
        self._units = units
        self._supplies: list[int] = []
        self._lows: list[int] = []
        # Tails, heads, capacities, and the three kinds of costs.
        self._columns: tuple[list[int], ...] = ([], [], [], [], [], [])

    def nodes(self, count: int, supply: int = 0) -> range:
        """Adds nodes, and lets flow enter at each of them, or leave, if the supply is negative.

        Returns:
            their numbers.
        """
        self._supplies += [supply] * count
        return range(len(self._supplies) - count, len(self._supplies))

    def arcs(
        self,
        tails: Sequence[int],
        heads: Sequence[int],
        high: _Numbers,
        low: _Numbers = 0,
        *,
        uneven: _Numbers = 0,
        restore: _Numbers = 0,
        moves: _Numbers = 0,
    ) -> range:
        """Adds arcs between nodes, with bounds of their flow and costs a unit; a number stands for as many of it.

        Returns:
            their numbers, for `solve`.
        """
        count = len(tails)
        highs, lows, *costs = (
            [each] * count if isinstance(each, int) else each for each in (high, low, uneven, restore, moves)
        )
        for tail, head, least in zip(tails, heads, lows, strict=True):
            if least:  # a supply at the head, taken from the tail
                self._supplies[tail] -= least
                self._supplies[head] += least
        self._lows += lows
        capacities = [most - least for most, least in zip(highs, lows, strict=True)]
        for column, more in zip(self._columns, (tails, heads, capacities, *costs), strict=True):
            column += more
        return range(len(self._lows) - count, len(self._lows))

    def solve(self) -> list[int]:
        """The cheapest flow, by arc; equal networks have equal flows.

        Raises:
            ValueError: no flow meets the bounds.
            MissingExtraError: the network is too large without OR-Tools.
        """
        columns = (*self._columns[:3], self._weighted(*self._columns[3:]))
        used = [arc for arc, capacity in enumerate(columns[2]) if capacity]
        tails, heads, capacities, costs = ([column[arc] for arc in used] for column in columns)
        if len(used) * self._units > _SMALL:
            require_or_tools()
        solve = _solve_with_or_tools if is_installed() else solve_with_shortest_paths
        found = solve(tails, heads, capacities, costs, self._supplies)
        flows = list(self._lows)
        for arc, flow in zip(used, found, strict=True):
            flows[arc] += flow
        return flows

    def _weighted(self, uneven: list[int], restore: list[int], moves: list[int]) -> list[int]:
        others = len(self._supplies) * (self._units + 1) * max(1, max(uneven, default=0) * self._units)
        shift = (max(restore, default=0) // max(1, _RANGE // others)).bit_length()
        lesser = [-(-cost >> shift) * (self._units + 1) + moved for cost, moved in zip(restore, moves, strict=True)]
        weight = max(lesser, default=0) * self._units + 1
        return [first * weight + second for first, second in zip(uneven, lesser, strict=True)]


def _solve_with_or_tools(
    tails: Sequence[int], heads: Sequence[int], capacities: Sequence[int], costs: Sequence[int], supplies: Sequence[int]
) -> list[int]:
    import numpy as np
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    solver = SimpleMinCostFlow()
    arcs = (np.array(column, np.int64) for column in (tails, heads, capacities, costs))
    solver.add_arcs_with_capacity_and_unit_cost(*arcs)
    solver.set_nodes_supplies(np.arange(len(supplies)), np.array(supplies, np.int64))
    if (status := solver.solve()) != solver.OPTIMAL:
        raise ValueError(f"no flow: {status.name}")
    flows: list[int] = solver.flows(np.arange(len(tails))).tolist()
    return flows
