"""Small worlds with everything that goes wrong, and a large one with two thousand members."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.streams.scenario import LARGE, SMALL, simulate

CHUNK = 5
SEEDS = 40


@pytest.mark.parametrize("first", range(1, SEEDS + 1, CHUNK))
def test_small_worlds(first: int) -> None:
    total = sum((simulate(seed, SMALL) for seed in range(first, first + CHUNK)), Counter[str]())
    assert total["heartbeats"] > 1_000 * CHUNK and total["targets"] > 50 * CHUNK and total["moved"] > 0


def test_a_large_world() -> None:
    total = simulate(1_001, LARGE)
    assert total["heartbeats"] > 100_000 and total["ids"] >= 2_000
