from __future__ import annotations

from random import Random

import pytest

from kohort.coordinator.placement import Group, optimal, sticky
from tests.coordinator.placement.groups import random_group
from tests.coordinator.placement.invariants import check_invariants
from tests.coordinator.placement.oracle import (
    best,
    best_standbys,
    everything,
    is_balanced,
    standby_worth,
    worth,
)


def small_groups(seeds: range, **limits: int) -> list[Group]:
    return [random_group(Random(seed), **limits) for seed in seeds]


def test_the_oracle_finds_what_trying_every_placement_finds() -> None:
    for group in small_groups(range(60), members=3, subtopologies=2, partitions=3):
        everywhere = (worth(group, active) for active in everything(group) if is_balanced(group, active))
        assert best(group) == min(everywhere)


@pytest.mark.parametrize("block", range(4))
def test_nothing_is_more_even_or_moves_less(block: int) -> None:
    for seed, group in enumerate(small_groups(range(500 * block, 500 * block + 500))):
        placement = optimal(group)
        check_invariants(group, placement)
        assert worth(group, placement.active) == best(group), seed


def test_nothing_is_more_even_or_moves_less_in_larger_groups() -> None:
    for seed, group in enumerate(small_groups(range(10_000, 10_250), members=5, subtopologies=4, partitions=6)):
        assert worth(group, optimal(group).active) == best(group), seed


def test_no_standbys_are_in_better_racks_or_more_even_or_move_less() -> None:
    for seed, group in enumerate(small_groups(range(20_000, 20_600))):
        placement = optimal(group)
        if placement.standby:
            assert standby_worth(group, placement) == best_standbys(group, placement.active), seed


def test_greed_keeps_the_rules_and_is_as_even() -> None:
    uneven = 0
    for group in small_groups(range(1000)):
        placement = sticky(group)
        check_invariants(group, placement)
        uneven += worth(group, placement.active).spread > best(group).spread
    assert uneven <= 5  # a local search
