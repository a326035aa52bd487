from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.console import words
from kohort.console.chart import HEIGHT, WIDTH, chart
from kohort.console.history import Sample
from kohort.console.trend import Direction, Trend


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "less than 1 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (3_600, "1 h"),
        (90_061, "1 d 1 h"),
        (1e9, "more than 99 d"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


@given(st.floats(0, 1e12))
def test_any_duration_is_short(seconds: float) -> None:
    assert len(words.duration(seconds)) <= 15


def test_trends() -> None:
    assert words.trend_text(Trend(Direction.FALLING, -120.4, 200)) == "falling by 120/s, caught up in 3 min 20 s"
    assert words.trend_text(Trend(Direction.RISING, 0.05)) == "rising by 3.0/min"
    assert words.trend_text(Trend(Direction.STEADY, 0.0)) == "steady"


@given(st.integers(-1, 2**63 - 1))
def test_any_time_is_told(ms: int) -> None:
    assert words.moment(ms)


def test_times_are_in_utc() -> None:
    assert words.moment(1_357_016_400_007) == "2013-01-01 05:00:00.007 UTC"


@given(st.lists(st.integers(0, 10**15), min_size=2, max_size=50))
def test_a_line_stays_within_its_picture(values: list[int]) -> None:
    drawn = chart([Sample(float(at), value) for at, value in enumerate(values)])
    points = [tuple(map(float, point.split(","))) for point in drawn.points.split()]
    assert len(points) == len(values)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
    assert f"at most {max(values):,}" in drawn.text
