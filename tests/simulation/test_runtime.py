"""Whole instances in virtual time; member, task manager and coordinator are the real ones. See `make simulate`."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.marks import long
from tests.simulation.runtime.application import PROGRAM_KINDS
from tests.simulation.runtime.scenario import Scenario, simulate

CHUNK = 50
PROGRAM_CHUNK = 25
SEEDS = [1, *long(51, 101, 151)]
"""More than any breakage needs to be noticed."""


def test_one_instance_without_faults() -> None:
    cluster = Scenario(1, processes=1).run()
    assert cluster.oracle.commits > 30 and cluster.counts["Lost"] == 0 and cluster.counts["RESTORE"] <= 8


def test_the_same_seed_is_the_same_run() -> None:
    assert simulate(7) == simulate(7)


@pytest.mark.parametrize("first", SEEDS)
def test_each_input_counts_once(first: int) -> None:
    total = sum((simulate(seed) for seed in range(first, first + CHUNK)), Counter[str]())
    assert total["seeds"] == CHUNK and total["commits"] > 15 * CHUNK and total["crash"] > CHUNK / 2
    assert total["Lost"] and total["RolesChanged"] and total["dangling"] and total["unstable"]


@pytest.mark.parametrize("kind", PROGRAM_KINDS)
def test_joins_sessions_and_timers_go_on_where_they_were(kind: str) -> None:
    total = sum((simulate(seed, kinds=(kind,)) for seed in range(1, 1 + PROGRAM_CHUNK)), Counter[str]())
    assert total["seeds"] == PROGRAM_CHUNK and total["commits"] > 10 * PROGRAM_CHUNK and total["crash"]
    assert total["Lost"] and total["RolesChanged"] and total["wiped"]
    assert (total["called"] > 0) is (kind == "timers")
