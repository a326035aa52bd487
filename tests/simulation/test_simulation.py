"""Seventy-five small worlds and one of fifty groups: a quarter of a million heartbeats. `make simulate` runs more."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.scenario import SIZES, simulate

CHUNK = 25
SEEDS = [1, *(pytest.param(first, marks=pytest.mark.long) for first in (26, 51))]


@pytest.mark.parametrize("first", SEEDS)
def test_small_worlds(first: int) -> None:
    total = sum((simulate(seed, SIZES["small"]) for seed in range(first, first + CHUNK)), Counter[str]())
    assert total["heartbeats"] > 1_500 * CHUNK and total["restarts"] > CHUNK


@pytest.mark.long
def test_many_groups() -> None:
    assert simulate(1001, SIZES["medium"])["heartbeats"] > 60_000
