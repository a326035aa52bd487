"""Small worlds with everything that goes wrong, and one with four hundred members. `make simulate` runs more."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.marks import long
from tests.simulation.streams.scenario import SIZES, simulate

SEEDS = [range(11, 13), *long(range(13, 21))]


@pytest.mark.parametrize("seeds", SEEDS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_small_worlds(seeds: range) -> None:
    total = sum((simulate(seed, SIZES["small"]) for seed in seeds), Counter[str]())
    assert total["heartbeats"] > 1_000 * len(seeds) and total["targets"] > 50 * len(seeds) and total["moved"] > 0
    assert total["failed appends"] > 0


@pytest.mark.long
def test_large_groups() -> None:
    total = simulate(1_001, SIZES["medium"])
    assert total["heartbeats"] > 10_000 and total["ids"] >= 400
