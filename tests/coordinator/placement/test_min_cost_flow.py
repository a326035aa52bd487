from __future__ import annotations

import sys

import pytest

from kohort.coordinator.placement.min_cost_flow import MinCostFlow


@pytest.fixture(autouse=True, params=["OR-Tools", "Python"])
def solver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "Python":
        monkeypatch.setitem(sys.modules, "ortools", None)


def two_ways(units: int, first: dict[str, int], second: dict[str, int], low: int = 0) -> list[int]:
    """How much flows each of two ways, each wide enough for all but one unit."""
    network = MinCostFlow(units)
    (source,), (one, two), (sink,) = network.nodes(1, units), network.nodes(2), network.nodes(1, -units)
    ways = network.arcs([source, source], [one, two], units - 1, [0, low])
    network.arcs([one], [sink], units, **first)
    network.arcs([two], [sink], units, **second)
    flows = network.solve()
    return [flows[way] for way in ways]


def test_flow_takes_the_cheaper_way() -> None:
    assert two_ways(5, {"restore": 3}, {"restore": 2}) == [1, 4]


def test_flow_keeps_lower_bounds() -> None:
    assert two_ways(5, {"restore": 1}, {"restore": 2}, low=3) == [2, 3]


def test_no_number_of_moves_outweighs_state() -> None:
    assert two_ways(5, {"restore": 1}, {"moves": 1}) == [1, 4]


def test_no_state_outweighs_evenness() -> None:
    assert two_ways(5, {"uneven": 1}, {"restore": 2**40, "moves": 1}) == [1, 4]


def test_costs_near_the_end_of_64_bits_are_compared_as_far_as_that_goes() -> None:
    assert two_ways(5, {"restore": 2**62}, {"restore": 2**61}) == [1, 4]
    assert two_ways(5, {"restore": 1}, {"moves": 1, "restore": 2**62}) == [4, 1]


def test_bounds_that_cannot_be_met_are_an_error() -> None:
    with pytest.raises(ValueError, match="no flow"):
        two_ways(5, {}, {}, low=5)
