from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kohort.console.history import History, Sample

SAMPLES = st.lists(st.tuples(st.floats(0.001, 1_000), st.integers(0, 2**62)), max_size=400)
"""Steps of time, and values."""


def filled(steps: list[tuple[float, int]], recent: int, most: int) -> tuple[History, list[Sample]]:
    history, given, at = History(recent, most), [], 0.0
    for step, value in steps:
        at += step
        given.append(Sample(at, value))
        history.add(at, value)
    return history, given


@given(SAMPLES, st.integers(2, 12), st.integers(4, 20))
def test_a_history_is_bounded_and_holds_what_was_measured(
    steps: list[tuple[float, int]], recent: int, most: int
) -> None:
    history, given_samples = filled(steps, recent, most)
    kept = history.samples
    assert len(kept) <= most
    assert history.recent == given_samples[-recent:]
    assert set(kept) <= set(given_samples)
    assert kept == sorted(kept)
    if given_samples:
        assert (kept[0], kept[-1]) == (given_samples[0], given_samples[-1])


@given(st.integers(1, 3_000))
def test_samples_of_a_steady_clock_stay_about_equally_far_apart(count: int) -> None:
    history, _ = filled([(2.0, 1)] * count, 10, 20)
    kept = history.samples
    gaps = [later.at - earlier.at for earlier, later in pairwise(kept[:-1])]
    assert len(kept) >= min(count, 10)
    assert not gaps or max(gaps) <= 2 * min(gaps) + 2


def test_a_sample_that_is_not_newer_is_passed_over() -> None:
    history = History()
    for at, value in ((1.0, 5), (1.0, 6), (0.5, 7), (2.0, 8)):
        history.add(at, value)
    assert history.samples == history.recent == [Sample(1.0, 5), Sample(2.0, 8)]
