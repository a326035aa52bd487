"""Lines of the partitions that lag most."""

from __future__ import annotations

from importlib import resources

from hypothesis import given
from hypothesis import strategies as st

from kohort.client.types import TopicPartition
from kohort.console.partition_lags import (
    EVERY_S,
    HEIGHT,
    MOST_LINES,
    MOST_PARTITIONS,
    POINTS,
    STEP,
    Line,
    PartitionLags,
)


def lags(*values: int) -> dict[TopicPartition, int]:
    return {TopicPartition("t", at): lag for at, lag in enumerate(values)}


P0 = TopicPartition("t", 0)


def test_a_line_goes_from_the_first_look_to_the_newest() -> None:
    kept = PartitionLags()
    kept.looked(1.0, lags(10))
    assert kept.lines() == {}
    kept.looked(21.0, lags(40))
    kept.looked(23.0, lags(30))  # of 20 s the largest counts
    kept.looked(65.0, lags(0))
    assert kept.lines() == {P0: Line("81,15 84,0 90,20", -10, 60.0)}


def test_a_still_partition_has_the_same_line_in_each_look() -> None:
    kept = PartitionLags()
    found = set()
    for look in range(1_000):
        kept.looked(2.0 * look, lags(7))
        if 2 * look >= EVERY_S * (POINTS - 1):
            found.add(kept.lines()[P0])
    (line,) = found
    assert (line.grown, line.seconds) == (0, 600.0)


def test_of_many_partitions_those_that_lag_most_are_kept_and_fewer_drawn() -> None:
    kept = PartitionLags()
    count = 10 * MOST_PARTITIONS
    for look in range(3):
        kept.looked(EVERY_S * look, lags(*range(count)))
    assert len(kept._lags) == MOST_PARTITIONS
    assert sorted(each.partition for each in kept.lines()) == [*range(count - MOST_LINES, count)]


def test_partitions_whose_lag_swings_keep_their_lines_and_a_look_without_them_does_too() -> None:
    """By the last look alone others would lag most each time."""
    kept, count = PartitionLags(), 4 * MOST_PARTITIONS
    for look in range(60):
        swinging = [100 * ((look + 3 * number) % 8) for number in range(count)]
        kept.looked(2.0 * look, lags(*swinging, 900) if look % 10 else {})
    lines = kept.lines()
    assert len(lines) == MOST_LINES
    assert next(iter(lines)).partition == count  # which stands still, far behind


@given(st.lists(st.tuples(st.floats(0.1, 1_500), st.lists(st.integers(0, 2**70), max_size=3)), max_size=80))
def test_lines_stay_within_their_picture_whatever_comes(looks: list[tuple[float, list[int]]]) -> None:
    kept, at = PartitionLags(), 0.0
    for step, values in looks:
        at += step
        kept.looked(at, lags(*values))
        lines = kept.lines()
        assert len(lines) <= 3
        for line in lines.values():
            points = [tuple(map(int, each.split(","))) for each in line.points.split(" ")]
            assert 2 <= len(points) <= POINTS
            assert points == sorted(points, key=lambda each: each[0])
            assert points[-1][0] == STEP * (POINTS - 1)
            assert all(0 <= x <= STEP * (POINTS - 1) and 0 <= y <= HEIGHT for x, y in points)


def test_the_page_and_its_script_draw_them_as_large_as_they_are() -> None:
    box = f"0 -1 {STEP * (POINTS - 1)} {HEIGHT + 2}"
    for name in ("templates/macros.html", "static/console.js"):
        assert f'"{box}"' in resources.files("kohort.console").joinpath(name).read_text()
