from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kohort.console.history import Sample
from kohort.console.trend import LEAST_SAMPLES, MOST_SAMPLES, Direction, trend

LAGS = st.lists(st.tuples(st.integers(1, 1_000), st.integers(0, 10**12)), max_size=MOST_SAMPLES).map(
    lambda steps: [
        Sample(float(sum(step for step, _ in steps[: at + 1])), value) for at, (_, value) in enumerate(steps)
    ]
)


def line(start: int, step: int, count: int, every: float = 2.0) -> list[Sample]:
    return [Sample(at * every, start + at * step) for at in range(count)]


def test_a_lag_that_falls_says_when_it_is_caught_up() -> None:
    found = trend(line(1_000, -20, 6))
    assert (found.direction, found.per_second, found.caught_up_in) == (Direction.FALLING, -10.0, 90.0)


def test_a_lag_that_grows_is_never_caught_up() -> None:
    found = trend(line(1_000, 20, 6))
    assert (found.direction, found.per_second, found.caught_up_in) == (Direction.RISING, 10.0, None)


@pytest.mark.parametrize(
    ("samples", "direction"),
    [
        ([], Direction.UNKNOWN),
        (line(10, -1, LEAST_SAMPLES - 1), Direction.UNKNOWN),
        (line(0, 0, 1), Direction.CAUGHT_UP),
        (line(5, -1, 6), Direction.CAUGHT_UP),
        (line(1_000_000, 10, 6), Direction.STEADY),
        (line(7, 0, 6), Direction.STEADY),
    ],
)
def test_directions(samples: list[Sample], direction: Direction) -> None:
    assert trend(samples).direction is direction


@given(LAGS)
def test_a_time_is_told_where_a_lag_falls_and_only_there(samples: list[Sample]) -> None:
    found = trend(samples)
    assert (found.caught_up_in is not None) == (found.direction is Direction.FALLING)
    if found.caught_up_in is not None:
        assert found.per_second is not None
        assert found.caught_up_in > 0 > found.per_second
    if samples and samples[-1].value == 0:
        assert found.direction is Direction.CAUGHT_UP


@given(LAGS, st.integers(-(10**6), 10**6))
def test_a_trend_depends_on_no_clock(samples: list[Sample], shift: int) -> None:
    assert trend([Sample(each.at + shift, each.value) for each in samples]) == trend(samples)


@given(st.integers(-50, 50), st.integers(9, 30), st.data())
def test_one_value_that_is_off_turns_nothing(step: int, count: int, data: st.DataObject) -> None:
    """A commit that is late, or a burst of records."""
    assume(step)
    samples = line(1_000_000, step * 10_000, count)
    at = data.draw(st.integers(0, count - 2))
    samples[at] = Sample(samples[at].at, data.draw(st.integers(0, 10**9)))
    assert trend(samples).direction in (Direction.RISING if step > 0 else Direction.FALLING, Direction.CAUGHT_UP)


@given(st.integers(1, 10**6), st.integers(1, 10**4), st.floats(0.1, 100))
def test_at_an_even_pace_the_time_is_exact(left: int, step: int, every: float) -> None:
    samples = [Sample(at * every, left + (10 - at) * step) for at in range(11)]
    found = trend(samples)
    assume(found.direction is Direction.FALLING)
    assert found.caught_up_in == pytest.approx(left / (step / every), rel=1e-6)


def sawtooth(period: int, phase: int, rate: int, *, pace: int = 0, start: int = 1_000_000) -> list[Sample]:
    """A lag that rises by `rate` from one sample to the next, and is brought down every `period` of them.

    Over all of that it moves by `pace`.
    """
    return [Sample(2.0 * at, start + pace * at + rate * ((at + phase) % period)) for at in range(MOST_SAMPLES)]


TEETH = st.integers(2, MOST_SAMPLES // 3), st.integers(0, MOST_SAMPLES), st.integers(1_000, 10**6)
"""The length of a tooth, where the first one begins, and how quickly it rises."""


@given(*TEETH)
def test_a_lag_that_swings_about_a_level_goes_nowhere(period: int, phase: int, rate: int) -> None:
    """As that of a consumer that keeps up, and commits now and then."""
    assert trend(sawtooth(period, phase, rate, start=1)).direction is Direction.STEADY


@given(*TEETH, st.sampled_from([-1, 1]))
def test_a_lag_that_swings_goes_where_its_teeth_go(period: int, phase: int, rate: int, way: int) -> None:
    pace = way * rate
    found = trend(sawtooth(period, phase, rate, pace=pace, start=1_000 * rate))
    assert found.direction is (Direction.RISING if way > 0 else Direction.FALLING)
    assert found.per_second == pytest.approx(pace / 2, rel=0.15)
    if way < 0:
        assert found.caught_up_in == pytest.approx(2_000 - 2 * MOST_SAMPLES, rel=0.15)


@given(st.integers(2, 20), st.integers(0, 60), st.integers(1, 10**6))
def test_a_lag_that_falls_in_steps_falls(period: int, phase: int, step: int) -> None:
    """A consumer that reads what nobody adds to, and commits now and then."""
    samples = [Sample(2.0 * at, step * (200 - (at + phase) // period)) for at in range(MOST_SAMPLES)]
    found = trend(samples)
    assert found.direction is Direction.FALLING
    assert found.per_second == pytest.approx(-step / period / 2, rel=0.2)


def test_a_consumer_that_hangs_is_told_within_a_minute() -> None:
    """Its lag has swung, and then only rises."""
    teeth = [at % 15 if at < 0 else at for at in range(-MOST_SAMPLES, 30)]
    samples = [Sample(2.0 * at, 100 + 10 * each) for at, each in enumerate(teeth)]
    assert trend(samples[:MOST_SAMPLES]).direction is Direction.STEADY
    assert trend(samples).direction is Direction.RISING
    assert trend(samples) == trend(samples[-MOST_SAMPLES:])
