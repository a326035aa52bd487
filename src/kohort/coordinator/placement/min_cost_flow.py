"""Min-cost flow with lower bounds, on OR-Tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import ArrayLike, NDArray

_RANGE: Final = 2**58  # bound of costs times nodes, so that the solver's numbers don't overflow


class MinCostFlow:
    """A network that is built in bulk: arrays of nodes, arrays of arcs, and supplies.

    Arcs have costs a unit of three kinds: unevenness counts most, then state to restore, then moves. These are weighted
    so that no sum of a lesser kind outweighs a greater one. If costs of restoring are too large for that, the last bits
    of all of them are dropped; but a cost above 0 stays above 0.

    Args:
        units: units of flow; each has one arc at most with state to restore, and one at most with a move.
    """

    def __init__(self, units: int) -> None:
        import numpy as np

        self._np = np
        self._units = units
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
        """Lets flow enter at nodes, or leave where the amount is negative; calls add up."""
        pair = (self._np.asarray(each, self._np.int64) for each in (nodes, amount))
        where, amounts = self._np.broadcast_arrays(*pair)
        self._supplies.append((where.ravel(), amounts.ravel()))

    def arcs(
        self,
        tail: ArrayLike,
        head: ArrayLike,
        high: ArrayLike,
        low: ArrayLike = 0,
        *,
        uneven: ArrayLike = 0,
        restore: ArrayLike = 0,
        moves: ArrayLike = 0,
    ) -> int:
        """Add arcs between nodes, with bounds of their flow and costs a unit; a number stands for an array of it.

        Returns:
            the number of this batch, for `solve`.
        """
        np = self._np
        columns = (np.asarray(each, np.int64) for each in (tail, head, low, high, uneven, restore, moves))
        tails, heads, lows, highs, *costs = (array.ravel() for array in np.broadcast_arrays(*columns))
        self.supply(tails, -lows)  # a lower bound is a supply at the head, taken from the tail
        self.supply(heads, lows)
        self._arcs.append((tails, heads, lows, highs - lows, *costs))
        return len(self._arcs) - 1

    def solve(self) -> list[NDArray[int64]]:
        """The cheapest flow, by batch and arc; equal networks have equal flows.

        Raises:
            ValueError: no flow meets the bounds.
        """
        from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

        np = self._np
        supply = np.zeros(self._nodes, np.int64)
        for nodes, amount in self._supplies:
            np.add.at(supply, nodes, amount)
        tails, heads, lows, capacities, *costs = (np.concatenate(column) for column in zip(*self._arcs, strict=True))
        used = np.flatnonzero(capacities)
        solver = SimpleMinCostFlow()
        weighted = self._weighted(*costs)[used]
        solver.add_arcs_with_capacity_and_unit_cost(tails[used], heads[used], capacities[used], weighted)
        solver.set_nodes_supplies(np.arange(self._nodes), supply)
        if (status := solver.solve()) != solver.OPTIMAL:
            raise ValueError(f"no flow: {status.name}")
        lows[used] += solver.flows(np.arange(len(used)))
        ends = np.cumsum([len(batch[0]) for batch in self._arcs])
        return [lows[end - len(batch[0]) : end] for end, batch in zip(ends, self._arcs, strict=True)]

    def _weighted(self, uneven: NDArray[int64], restore: NDArray[int64], moves: NDArray[int64]) -> NDArray[int64]:
        others = self._nodes * (self._units + 1) * max(1, int(uneven.max(initial=0)) * self._units)
        shift = (int(restore.max(initial=0)) // max(1, _RANGE // others)).bit_length()
        lesser = -(-restore >> shift) * (self._units + 1) + moves
        return uneven * (int(lesser.max(initial=0)) * self._units + 1) + lesser
