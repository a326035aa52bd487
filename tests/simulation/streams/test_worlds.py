"""Small worlds with everything that goes wrong, and one with four hundred members. `make simulate` runs more."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.streams.scenario import SIZES, simulate

CHUNK = 5
SEEDS = [11, pytest.param(16, marks=pytest.mark.long)]


@pytest.mark.parametrize("first", SEEDS)
def test_small_worlds(first: int) -> None:
    total = sum((simulate(seed, SIZES["small"]) for seed in range(first, first + CHUNK)), Counter[str]())
    assert total["heartbeats"] > 1_000 * CHUNK and total["targets"] > 50 * CHUNK and total["moved"] > 0
    assert total["failed appends"] > 0


@pytest.mark.long
def test_large_groups() -> None:
    total = simulate(1_001, SIZES["medium"])
    assert total["heartbeats"] > 10_000 and total["ids"] >= 400
