"""Min-cost flows with lower bounds, on OR-Tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Network"]

_RANGE: Final = 2**58  # what costs times nodes stay below, so that the solver's numbers don't overflow


class Network:
    """A network that is built in bulk: arrays of nodes, arrays of arcs, and what flows in.

    A unit of flow costs the sum of what its arcs cost, first in state to restore, and among equals in moves.

    Args:
        units: units of flow that can move at most.
    """

    def __init__(self, units: int) -> None:
        import numpy as np

        self._np = np
        self._weight = units + 1
        self._nodes = 0
        self._supplies: list[tuple[NDArray[int64], NDArray[int64]]] = []
        self._arcs: list[tuple[NDArray[int64], ...]] = []

    def nodes(self, count: int) -> NDArray[int64]:
        """Add nodes.

        Returns:
            their numbers.
        """
        self._nodes += count
        return self._np.arange(self._nodes - count, self._nodes)

    def supply(self, nodes: ArrayLike, amount: ArrayLike) -> None:
        """Let flow enter at nodes, or leave where the amount is negative; it adds up."""
        pair = self._np.broadcast_arrays(
            self._np.asarray(nodes, self._np.int64), self._np.asarray(amount, self._np.int64)
        )
        self._supplies.append((pair[0].ravel(), pair[1].ravel()))

    def arcs(
        self,
        tail: ArrayLike,
        head: ArrayLike,
        high: ArrayLike,
        low: ArrayLike = 0,
        restore: ArrayLike = 0,
        moves: ArrayLike = 0,
    ) -> int:
        """Add arcs between nodes, with bounds of their flow and costs a unit; numbers stand for arrays of them.

        Returns:
            the number of this batch, for `solve`.
        """
        np = self._np
        columns = (np.asarray(each, np.int64) for each in (tail, head, low, high, restore, moves))
        tails, heads, lows, highs, *costs = (array.ravel() for array in np.broadcast_arrays(*columns))
        self.supply(tails, -lows)  # what must flow is at its end from the beginning
        self.supply(heads, lows)
        self._arcs.append((tails, heads, lows, highs - lows, *costs))
        return len(self._arcs) - 1

    def solve(self) -> list[NDArray[int64]]:
        """The cheapest flow, by batch and arc; equal networks have equal flows.

        State is weighted with the number of units. Where its costs are too large for that, their last
        bits are dropped, all alike, and what isn't nothing stays more than nothing.

        Raises:
            ValueError: no flow meets the bounds.
        """
        from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

        np = self._np
        supply = np.zeros(self._nodes, np.int64)
        for nodes, amount in self._supplies:
            np.add.at(supply, nodes, amount)
        tails, heads, lows, capacities, restore, moves = (
            np.concatenate(column) for column in zip(*self._arcs, strict=True)
        )
        largest = _RANGE // (self._nodes * self._weight)
        shift = (int(restore.max(initial=0)) // largest).bit_length()
        costs = -(-restore >> shift) * self._weight + moves
        used = np.flatnonzero(capacities)
        solver = SimpleMinCostFlow()
        solver.add_arcs_with_capacity_and_unit_cost(tails[used], heads[used], capacities[used], costs[used])
        solver.set_nodes_supplies(np.arange(self._nodes), supply)
        if (status := solver.solve()) != solver.OPTIMAL:
            raise ValueError(f"no flow: {status.name}")
        lows[used] += solver.flows(np.arange(len(used)))
        return np.split(lows, np.cumsum([len(batch[0]) for batch in self._arcs])[:-1])
