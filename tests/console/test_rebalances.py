"""How often a group has rebalanced of late."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.console.rebalances import LATELY_S, Rebalances, Seen, between, seen
from tests.console.test_group_events import group


@pytest.mark.parametrize(
    ("before", "now", "count"),
    [
        (Seen(12, False, 1), Seen(17, False, 1), 5),
        (Seen(12, True, 1), Seen(12, False, 2), 0),
        (Seen(12, False, 1), Seen(2, False, 1), 1),
        (Seen(None, False, 1), Seen(None, True, 1), 1),
        (Seen(None, True, 1), Seen(None, True, 1), 0),
        (Seen(None, True, 1), Seen(None, True, 2), 1),
        (Seen(None, False, 1), Seen(None, False, 2), 1),
        (Seen(None, True, 1), Seen(None, False, 1), 0),
    ],
)
def test_rebalances_between_two_looks(before: Seen, now: Seen, count: int) -> None:
    assert between(before, now) == count


def test_what_a_description_says() -> None:
    one = group("PreparingRebalance", ann=[0], dan=[1])
    found = seen(one)
    assert (found.epoch, found.under_way) == (1, True)
    assert seen(replace(one, members=one.members[::-1])).members == found.members
    assert seen(replace(one, members=one.members[:1])).members != found.members


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(0, 3)), max_size=400))
def test_those_of_ten_minutes_are_counted_and_little_is_kept(steps: list[tuple[int, int]]) -> None:
    """As far as those of 15 s, which are kept as one number, allow."""
    rebalances, at, epoch, grown = Rebalances(), 0.0, 0, []
    assert rebalances.looked(at, Seen(0, False, 0)) == 0
    for step, count in steps:
        at, epoch = at + step, epoch + count
        grown.append((at, count))
        found = rebalances.looked(at, Seen(epoch, False, 0))
        late = sum(count for when, count in grown if when > at - LATELY_S + 15)
        assert late <= found <= sum(count for when, count in grown if when > at - LATELY_S)
        assert len(rebalances._counts) <= LATELY_S / 15 + 1
