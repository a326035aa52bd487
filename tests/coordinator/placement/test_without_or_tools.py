"""What is placed without OR-Tools and numpy: small groups as well as with them, larger ones not, but by `sticky`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest

from kohort.coordinator.placement import optimal, place, sticky
from kohort.coordinator.placement.min_cost_flow import MinCostFlow
from kohort.extras import MissingExtraError
from tests.coordinator.placement.changes import group
from tests.coordinator.placement.groups import random_group
from tests.coordinator.placement.invariants import check_invariants
from tests.coordinator.placement.oracle import best, best_standbys, standby_worth, worth

BLOCKED = ("numba", "numpy", "ortools", "pandas", "pyarrow")

IMPORTS = f"""
import sys
for name in {BLOCKED}:
    sys.modules[name] = None
from importlib import import_module
from pkgutil import walk_packages
import kohort.coordinator
for module in walk_packages(kohort.coordinator.__path__, "kohort.coordinator."):
    import_module(module.name)
from kohort.coordinator.placement import optimal
from tests.coordinator.placement.changes import group, joined
from kohort.coordinator.placement import Member
print(len(optimal(joined(group(3, (8, 1), (5, 2)), Member("m9"))).active))
"""


@contextmanager
def missing() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in BLOCKED:
            patch.setitem(sys.modules, name, None)
        yield


def test_coordinators_are_imported_and_place_without_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("13\n", "")


def test_small_groups_are_placed_as_well_as_can_be() -> None:
    for seed in range(400):
        group = random_group(Random(seed))
        with missing():
            placement = optimal(group)
        check_invariants(group, placement)
        assert worth(group, placement.active) == best(group), seed
        if placement.standby:
            assert standby_worth(group, placement) == best_standbys(group, placement.active), seed


@pytest.mark.parametrize("limits", [(8, 4, 8), pytest.param((15, 5, 20), marks=pytest.mark.long)])
def test_groups_are_placed_as_well_as_with_or_tools_or_by_sticky(limits: tuple[int, int, int]) -> None:
    refused = 0
    for seed in range(60):
        group = random_group(Random(seed), *limits)
        with missing():
            placement = place("optimal", group)
            try:
                found = optimal(group)
            except MissingExtraError:
                refused += 1
                found = sticky(group)
        check_invariants(group, placement)
        assert placement == found
        if found != sticky(group):
            assert worth(group, placement.active) == worth(group, optimal(group).active), seed
    assert refused <= 15


def test_what_needs_or_tools_says_so() -> None:
    uneven = group(12, (1, 1), (4, 3))
    with missing():
        assert place("optimal", uneven) == sticky(uneven)
        with pytest.raises(MissingExtraError, match=r"^placing this group .* needs ortools: pip install 'kohort\[pl"):
            optimal(uneven)


@pytest.mark.parametrize("nodes", [4, 12])
def test_flows_cost_as_much_as_with_or_tools(nodes: int) -> None:
    for seed in range(100):
        random = Random(seed)
        arcs = [
            (*random.sample(range(nodes), 2), random.randint(0, 4), random.randint(0, 5), random.randint(0, 1))
            for _ in range(4 * nodes)
        ]

        def flow(random: Random = random, arcs: list[tuple[int, ...]] = arcs) -> tuple[int, int] | str:
            network = MinCostFlow(6)
            source, *_, sink = network.nodes(nodes)
            tails, heads, highs, restore, moves = map(list, zip(*arcs, strict=True))
            lows = [min(1, high) if number < 2 else 0 for number, high in enumerate(highs)]
            network.arcs(tails, heads, highs, lows, restore=restore, moves=moves)
            network.arcs([sink], [source], 6, 3)
            try:
                flows = network.solve()
            except ValueError:
                return "none"
            each = list(zip(flows, restore, moves, strict=False))
            return sum(units * cost for units, cost, _ in each), sum(units * moved for units, _, moved in each)

        with missing():
            found = flow()
        assert found == flow(), seed
