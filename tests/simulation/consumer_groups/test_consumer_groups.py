"""Small worlds of consumer groups with all that can go wrong, and that breakages are noticed."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.consumer_groups import breakages
from tests.simulation.consumer_groups.breakages import BREAKAGES, WORLDS, Breakage, noticed
from tests.simulation.consumer_groups.scenario import simulate

CHUNK = 2
SEEDS = [1, *(pytest.param(first, marks=pytest.mark.long) for first in range(3, 27, 2))]
FROM = {"topics_unnoticed": 25, "never_due": 16}
"""Seeds that noticed these: the first do not, which would be tried every time."""
QUICKLY = (breakages.everything_free, breakages.commits_unfenced, breakages.target_unwritten)


@pytest.mark.parametrize("first", SEEDS)
def test_worlds(first: int) -> None:
    total = sum((simulate(seed) for seed in range(first, first + CHUNK)), Counter[str]())
    assert total["heartbeats"] > 1_000 * CHUNK


@pytest.mark.parametrize(
    "breakage",
    [pytest.param(each, id=each.__name__, marks=[] if each in QUICKLY else [pytest.mark.long]) for each in BREAKAGES],
)
def test_a_breakage_is_noticed(breakage: Breakage) -> None:
    assert noticed(breakage, WORLDS, FROM.get(breakage.__name__, 1)) is not None
