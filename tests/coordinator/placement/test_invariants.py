from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.coordinator.placement import ASSIGNORS, optimal, sticky
from tests.coordinator.placement.changes import after
from tests.coordinator.placement.groups import random_group
from tests.coordinator.placement.invariants import check_invariants
from tests.coordinator.placement.oracle import worth

seeds = st.integers(0, 2**32)


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from(sorted(ASSIGNORS)))
def test_large_groups_have_fair_placements(seed: int, name: str) -> None:
    group = random_group(Random(seed), members=40, subtopologies=12, partitions=60)
    check_invariants(group, ASSIGNORS[name](group))


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_optimal_is_at_least_as_good_as_greed(seed: int) -> None:
    group = random_group(Random(seed), members=20, subtopologies=6, partitions=30)
    assert worth(group, optimal(group).active) <= worth(group, sticky(group).active)


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_what_is_optimal_stays(seed: int) -> None:
    group = random_group(Random(seed), members=15, subtopologies=5, partitions=20, lags=False)
    placement = optimal(group)
    following = after(group, placement)
    again = optimal(following)
    assert again.active == placement.active
    assert {task: set(names) for task, names in again.standby.items()} == {
        task: set(names) for task, names in placement.standby.items()
    }
