"""How quickly topics are written and read, by what looks have seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kohort.client.administration.group_offsets import PartitionLag
from kohort.client.types import TopicPartition
from kohort.console import flow
from kohort.console.flow import Flow, Rate

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def lag(committed: int | None, end: int | None) -> PartitionLag:
    return PartitionLag(committed, end, None)


def test_offsets_a_second_over_all_partitions() -> None:
    found = Flow()
    found.add(10.0, {P0: lag(0, 100), P1: lag(5, 5)})
    assert found.rates() == {"t": Rate(None, None)}
    found.add(10.0, {P0: lag(0, 900)})  # no newer than the last
    found.add(12.0, {P0: lag(20, 120), P1: lag(5, 25)})
    assert found.rates() == {"t": Rate(20.0, 10.0)}


def test_partitions_that_were_not_known_before_make_no_rate() -> None:
    found = Flow()
    found.add(0.0, {P0: lag(None, 100)})
    found.add(1.0, {P0: lag(90, 110), P1: lag(None, 1_000)})
    assert found.rates() == {"t": Rate(None, None)}
    found.add(2.0, {P0: lag(95, 110), P1: lag(None, 1_010)})
    assert found.rates() == {"t": Rate(10.0, 5.0)}


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 2**60), st.none() | st.integers(0, 2**60)), max_size=30))
def test_a_rate_is_never_negative_whatever_offsets_do(looks: list[tuple[float, int, int | None]]) -> None:
    found = Flow()
    for at, end, committed in looks:
        found.add(at, {P0: lag(committed, end)})
        assert all((each or 0) >= 0 for rate in found.rates().values() for each in rate)


def test_few_topics_of_a_group_are_kept() -> None:
    found = Flow()
    found.add(1.0, {TopicPartition(f"t{number:03}", 0): lag(0, 1) for number in range(300)})
    assert len(found.rates()) == flow.MOST_TOPICS
