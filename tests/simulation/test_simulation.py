"""Five hundred small worlds and a large one: more than a million heartbeats."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.scenario import LARGE, SMALL, simulate

CHUNK = 50


@pytest.mark.parametrize("first", range(1, 501, CHUNK))
def test_small_worlds(first: int) -> None:
    total = sum((simulate(seed, SMALL) for seed in range(first, first + CHUNK)), Counter[str]())
    assert total["heartbeats"] > 75_000 and total["restarts"] > CHUNK


def test_a_large_world() -> None:
    assert simulate(1001, LARGE)["heartbeats"] > 300_000
