"""How many records an epoch takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.queues.epoch_size import EpochSize


@given(st.integers(1, 1_000_000), st.integers(2, 20))
def test_a_record_that_hangs_is_alone_at_its_last_delivery(records: int, deliveries: int) -> None:
    size = EpochSize(records, deliveries)
    for _ in range(deliveries - 1):
        assert 1 <= size.most <= records
        size.late()
    assert size.most == 1


@given(st.integers(1, 10_000), st.integers(1, 10), st.lists(st.booleans(), max_size=30))
def test_it_is_full_again_once_as_many_records_are_done(records: int, deliveries: int, late: list[bool]) -> None:
    size = EpochSize(records, deliveries)
    for each in late:
        if each:
            size.late()
        else:
            size.done(size.most)
    size.done(records)
    assert size.most == records


@pytest.mark.parametrize(("deliveries", "sizes"), [(4, [500, 63, 8, 1, 1]), (2, [500, 1, 1]), (1, [500, 1])])
def test_sizes(deliveries: int, sizes: list[int]) -> None:
    size, found = EpochSize(500, deliveries), []
    for _ in sizes:
        found.append(size.most)
        size.late()
    assert found == sizes
