"""How long a split's reading takes, on a clock that a test moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kohort.spark.epoch import EpochStatistics, OffsetRange, Read
from kohort.spark.jobs.stages.read_times import ReadTimes


class Clock:
    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


def test_waits_and_decoding_are_told_from_what_is_done_with_rows() -> None:
    clock = Clock()

    def fetched() -> Iterator[int]:
        clock.now += 1.0  # of which all is waited for, the end as well
        yield 1
        clock.now += 0.5
        yield 2
        clock.now += 0.25

    times = ReadTimes(clock)
    for _ in times.fetching(fetched()):
        with times.decoding():
            clock.now += 0.125
        clock.now += 8.0  # the rows are worked on
    ranges = [OffsetRange("a", 0, 0, 5), OffsetRange("a", 1, 7, 9), OffsetRange("a", 0, 6, 8)]
    assert times.read(ranges, EpochStatistics(12, 340)) == Read(12, 340, 18_000.0, 1_750.0, 250.0, ("a-0", "a-1"))


def test_an_error_of_the_fetching_is_the_readers() -> None:
    def fetched() -> Iterator[int]:
        yield 1
        raise LookupError

    with pytest.raises(LookupError):
        list(ReadTimes(Clock()).fetching(fetched()))
