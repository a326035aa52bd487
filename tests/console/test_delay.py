"""A lag in time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.console.delay import Delay, delay
from kohort.console.history import History, Sample

STEADY = [Sample(float(at), 100 * at) for at in range(61)]
"""A hundred records a second, for a minute."""


@pytest.mark.parametrize(
    ("lag", "found"),
    [
        (0, Delay(0.0)),
        (50, Delay(0.5)),
        (2_000, Delay(20.0)),
        (6_000, Delay(60.0)),
        (6_001, Delay(60.0, at_least=True)),
    ],
)
def test_what_is_read_next_was_written_so_long_ago(lag: int, found: Delay) -> None:
    assert delay(STEADY, lag) == found


def test_it_grows_while_nothing_is_written() -> None:
    assert delay([*STEADY, Sample(100.0, 6_000)], 500) == Delay(45.0)


def test_before_a_second_look_nothing_is_known() -> None:
    assert delay([], 0) is None
    assert delay([Sample(0.0, 10)], 10) is None
    assert delay([Sample(0.0, 10)], 0) == Delay(0.0)


def test_a_topic_that_is_made_anew_counts_from_then_on() -> None:
    anew = [*STEADY, Sample(70.0, 10), Sample(80.0, 20)]
    assert delay(anew, 5) == Delay(5.0)
    assert delay(anew, 15) == Delay(10.0, at_least=True)


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 500)), min_size=1, max_size=300), st.integers(0, 10_000))
def test_it_is_where_the_group_is_in_what_was_written(steps: list[tuple[int, int]], lag: int) -> None:
    """Also of samples that were thinned: it lies between the looks at which less, and at which more was written."""
    history, at, value = History(recent=5, most=10), 0.0, 0
    for apart, written in steps:
        at, value = at + apart, value + written
        history.add(at, value)
    found = delay(history.merged, lag)
    if found is None:
        assert len(steps) == 1
        return
    read, then = value - lag, at - found.seconds
    if found.at_least:
        assert history.merged[0].value > read
    elif lag:
        assert all(sample.value <= read for sample in history.merged if sample.at < then - 1e-6)
        assert all(sample.value >= read for sample in history.merged if sample.at > then + 1e-6)
