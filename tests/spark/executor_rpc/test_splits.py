"""Ranges are divided among splits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.epoch import OffsetRange
from kohort.spark.executor_rpc.splits import ahead_of, positions_of, ranges_of_split


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(1, 9), st.booleans())
def test_every_offset_is_read_once(lengths: list[int], splits: int, whole_partitions: bool) -> None:
    ranges = [OffsetRange("t", number, 100, 100 + length) for number, length in enumerate(lengths)]
    divided = [ranges_of_split(ranges, split, splits, whole_partitions=whole_partitions) for split in range(splits)]
    read = [(each.partition, offset) for mine in divided for each in mine for offset in range(each.start, each.end)]
    assert len(read) == len(set(read)) == sum(lengths)
    assert set(read) == {(each.partition, offset) for each in ranges for offset in range(each.start, each.end)}
    if whole_partitions:
        owners = [(each.partition, split) for split, mine in enumerate(divided) for each in mine]
        assert len({partition for partition, _ in owners}) == len(owners)
    else:
        sizes = [sum(each.length for each in mine) for mine in divided]
        assert max(sizes) - min(sizes) <= 1


@given(
    st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=2), max_size=6), st.lists(st.integers(0, 90), min_size=2)
)
def test_records_of_topics_that_are_read_together_have_one_order(epochs: list[list[int]], begin: list[int]) -> None:
    """Whatever an epoch reads of each: first one topic's, then the other's, and all after those of the epoch before."""
    places, at = [], begin[:2]
    for lengths in epochs:
        ends = [start + length for start, length in zip(at, lengths, strict=True)]
        ranges = [OffsetRange(topic, 3, at[number], ends[number]) for number, topic in enumerate("ab")]
        mine = [offset + ahead_of(ranges, each.topic)[3] for each in ranges for offset in range(each.start, each.end)]
        assert all(place >= positions_of(ranges)[3] for place in mine)
        assert all(place < positions_of(ranges)[3] + sum(lengths) for place in mine)
        places += mine
        at = ends
    assert places == sorted(set(places))
