"""Where offsets go when they are reset."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.administration.resets import PlannedReset, ResetError, ResetTo, plan
from kohort.client.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ENDS = {T0: (10, 100), T1: (0, 0)}


@pytest.mark.parametrize(
    ("to", "committed", "expected"),
    [
        (ResetTo.earliest(), 50, PlannedReset(50, 10, skipped=-40)),
        (ResetTo.latest(), 50, PlannedReset(50, 100, skipped=50)),
        (ResetTo.latest(), None, PlannedReset(None, 100)),
        (ResetTo.current(), 50, PlannedReset(50, 50)),
        (ResetTo.current(), 5, PlannedReset(5, 10, "5 is before the first offset")),
        (ResetTo.latest(), 5, PlannedReset(5, 100, skipped=90)),
        (ResetTo.offset(90), 120, PlannedReset(120, 90, skipped=-10)),
        (ResetTo.current(), None, PlannedReset(None, 100, "nothing is committed: the end")),
        (ResetTo.offset(60), 50, PlannedReset(50, 60, skipped=10)),
        (ResetTo.offset(3), None, PlannedReset(None, 10, "3 is before the first offset")),
        (ResetTo.offset(300), None, PlannedReset(None, 100, "300 is after the end")),
        (ResetTo.shift(-20), 50, PlannedReset(50, 30, skipped=-20)),
        (ResetTo.shift(-45), 50, PlannedReset(50, 10, "5 is before the first offset", -40)),
        (ResetTo.shift(51), 50, PlannedReset(50, 100, "101 is after the end", 50)),
        (ResetTo.to_offsets({T0: 77}), 50, PlannedReset(50, 77, skipped=27)),
    ],
)
def test_each_target(to: ResetTo, committed: int | None, expected: PlannedReset) -> None:
    now = {} if committed is None else {T0: committed}
    assert plan(to, now, {T0: ENDS[T0]}) == {T0: expected}


def test_a_time_is_where_its_record_is_or_the_end() -> None:
    planned = plan(ResetTo.time(1234), {}, ENDS, {T0: 42, T1: -1})
    assert planned == {T0: PlannedReset(None, 42), T1: PlannedReset(None, 0, "no record is as late: the end")}


def test_what_was_never_committed_cannot_be_shifted() -> None:
    with pytest.raises(ResetError, match="t-1: nothing is committed"):
        plan(ResetTo.shift(1), {T0: 11}, ENDS)


bounds = st.tuples(st.integers(0, 1000), st.integers(0, 1000)).map(lambda pair: (min(pair), max(pair)))


@given(
    st.sampled_from(
        [
            ResetTo.earliest(),
            ResetTo.latest(),
            ResetTo.current(),
            ResetTo.offset(500),
            ResetTo.shift(-3),
            ResetTo.shift(9),
        ]
    ),
    st.integers(0, 2000),
    bounds,
)
def test_nothing_ends_up_outside(to: ResetTo, committed: int, ends: tuple[int, int]) -> None:
    planned = plan(to, {T0: committed}, {T0: ends})[T0]
    assert ends[0] <= planned.after <= ends[1]
    assert planned.before == committed
    there = range(*ends)
    read, read_then = ({at for at in there if at >= begin} for begin in (committed, planned.after))
    assert planned.skipped == len(read) - len(read_then)
