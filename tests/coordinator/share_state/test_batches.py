"""State batches combined, beside a model that looks at every offset by itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.share_state import StateBatch, batches, combine
from kohort.coordinator.share_state.batches import overlay

BATCH = st.builds(
    lambda first, length, state, count: StateBatch(first, first + length, state, count),
    st.integers(0, 30),
    st.integers(0, 12),
    st.sampled_from((0, 2, 4)),
    st.integers(1, 3),
)
BATCHES = st.lists(BATCH, max_size=10)


def by_offset(batches: list[StateBatch], start: int) -> dict[int, tuple[int, int]]:
    states: dict[int, tuple[int, int]] = {}
    for batch in batches:
        for offset in range(max(start, batch.first_offset), batch.last_offset + 1):
            states[offset] = max(states.get(offset, (0, 0)), (batch.delivery_count, batch.delivery_state))
    return states


@given(BATCHES, BATCHES, st.integers(-1, 40))
def test_each_offset_has_its_highest_delivery_count_and_state(
    current: list[StateBatch], newer: list[StateBatch], start: int
) -> None:
    combined = combine(current, newer, start)

    assert by_offset(list(combined), -1) == by_offset(current + newer, start)


@given(BATCHES, BATCHES, st.integers(-1, 40))
def test_batches_are_few_in_order_and_do_not_overlap(
    current: list[StateBatch], newer: list[StateBatch], start: int
) -> None:
    combined = combine(current, newer, start)

    for batch, following in pairwise(combined):
        assert batch.last_offset < following.first_offset
        assert batch.last_offset + 1 < following.first_offset or batch[2:] != following[2:]
    assert combine(combined, (), start) == combined


@given(BATCHES, BATCHES, st.integers(-1, 40))
def test_an_overlay_is_the_same(current: list[StateBatch], newer: list[StateBatch], start: int) -> None:
    before = combine(current, ())

    assert overlay(before, newer, start) == combine(before, newer, start)


def test_one_record_does_not_cost_a_look_at_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    current = tuple(StateBatch(offset, offset, 2, 1) for offset in range(0, 2000, 2))
    looked_at: list[int] = []

    def counting(near: Sequence[StateBatch], newer: Sequence[StateBatch], start: int = -1) -> tuple[StateBatch, ...]:
        looked_at.append(len(near))
        return combine(near, newer, start)

    monkeypatch.setattr(batches, "combine", counting)

    assert len(overlay(current, [StateBatch(901, 901, 2, 1)], 100)) == 949
    assert looked_at == [2]


@pytest.mark.parametrize(
    ("current", "newer", "start", "combined"),
    [
        ([(0, 9, 0, 1)], [(10, 19, 0, 1)], -1, [(0, 19, 0, 1)]),
        ([(0, 9, 0, 1)], [(3, 5, 2, 1)], -1, [(0, 2, 0, 1), (3, 5, 2, 1), (6, 9, 0, 1)]),
        ([(0, 9, 2, 2)], [(3, 5, 0, 1)], -1, [(0, 9, 2, 2)]),
        ([(0, 9, 0, 1)], [(5, 14, 0, 2)], 3, [(3, 4, 0, 1), (5, 14, 0, 2)]),
        ([(0, 9, 0, 1)], [], 10, []),
        ([(0, 2**62, 0, 1)], [(5, 2**62 + 5, 4, 1)], -1, [(0, 4, 0, 1), (5, 2**62 + 5, 4, 1)]),
    ],
)
def test_examples(
    current: list[tuple[int, ...]], newer: list[tuple[int, ...]], start: int, combined: list[tuple[int, ...]]
) -> None:
    found = combine([StateBatch(*each) for each in current], [StateBatch(*each) for each in newer], start)

    assert [tuple(each) for each in found] == combined
