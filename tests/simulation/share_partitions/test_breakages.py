"""The simulation bites: each deliberate breakage of a share partition is noticed. `breakages.py` prints by what."""

from __future__ import annotations

import pytest

from tests.simulation.share_partitions.breakages import BREAKAGES, HARMLESS, Breakage, noticed

SEEDS = 80
"""More than any of them needs, several times over for nearly all."""


@pytest.mark.parametrize("breakage", [pytest.param(each, id=each.__name__) for each in BREAKAGES])
def test_a_breakage_is_noticed(breakage: Breakage) -> None:
    assert noticed(breakage, SEEDS) is not None


@pytest.mark.parametrize("breakage", [pytest.param(each, id=each.__name__) for each in HARMLESS])
def test_what_is_done_twice_over_can_be_left_out(breakage: Breakage) -> None:
    """If one of these is noticed one day, it has become a breakage: move it there."""
    assert noticed(breakage, SEEDS // 4) is None
