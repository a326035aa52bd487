"""The simulation bites: each deliberate breakage of the runtime is noticed. `runtime.breakages` prints by what."""

from __future__ import annotations

import pytest

from tests.simulation.runtime.application import KINDS, PROGRAM_KINDS
from tests.simulation.runtime.breakages import BREAKAGES, HARMLESS, OF_PROGRAMS, Breakage, noticed

QUICKLY = 100
"""Seeds that nearly all breakages need at most, several times over; the others need up to `SLOWLY`."""
SLOWLY = 1_000
FROM = {
    "dangling_not_ended": 68, "merged_after_what_is_decided": 64, "restored_too_early": 116,
    "topic_forgotten_when_tasks_come": 70,
}  # fmt: skip
"""Seeds that noticed these: the first do not, which would be tried every time."""
ONLY = {"topic_forgotten_when_tasks_come": ("repartition",)}
"""The programs that can notice these, where seeds of others would be in vain."""
RARE = frozenset(
    {
        "failures_never_reset", "unstable_offsets_taken", "dangling_not_ended", "restored_to_wrong_end",
        "restored_too_early", "committed_by_nobody", "lost_and_running", "lost_epoch_goes_on",
    }
)  # fmt: skip


@pytest.mark.parametrize(
    "breakage",
    [
        pytest.param(each, id=each.__name__, marks=[pytest.mark.long] if each.__name__ in RARE else [])
        for each in BREAKAGES
    ],
)
def test_a_breakage_is_noticed(breakage: Breakage) -> None:
    name = breakage.__name__
    seeds = SLOWLY if name in RARE else QUICKLY
    assert noticed(breakage, seeds, FROM.get(name, 1), ONLY.get(name, KINDS)) is not None


@pytest.mark.parametrize("breakage", [pytest.param(each, id=each.__name__) for each in OF_PROGRAMS])
def test_a_breakage_is_noticed_by_joins_sessions_or_timers(breakage: Breakage) -> None:
    assert noticed(breakage, QUICKLY, kinds=PROGRAM_KINDS) is not None


@pytest.mark.long
@pytest.mark.parametrize("breakage", [pytest.param(each, id=each.__name__) for each in HARMLESS])
def test_what_is_done_twice_over_can_be_left_out(breakage: Breakage) -> None:
    """If one of these is noticed one day, it has become a breakage: move it there."""
    assert noticed(breakage, QUICKLY) is None
