from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.security.quotas.rate import Rate

NOW = 1_700_000_000_000


def test_a_first_burst_counts_over_a_window_that_is_nearly_full() -> None:
    rate = Rate(11, 1000)
    rate.record(10_000, NOW)
    assert rate.measure(NOW) == 1000
    assert rate.measure(NOW + 5000) == 1000  # 5 s have gone, 5 more would be needed
    assert rate.measure(NOW + 10_500) == pytest.approx(10_000 / 10.5)
    assert rate.measure(NOW + 11_000) == 0
    assert rate.idle(NOW + 11_000)


def test_who_exceeds_a_bound_waits_until_the_rate_is_there() -> None:
    rate = Rate(11, 1000)
    rate.record(30_000, NOW)
    assert rate.throttle_ms(5000, NOW) == 0
    assert rate.throttle_ms(1000, NOW) == 20_000
    assert rate.throttle_ms(1000, NOW, 700) == 700
    assert rate.throttle_ms(0, NOW, 700) == 700


def test_old_samples_are_forgotten_one_by_one() -> None:
    rate = Rate(3, 1000)
    for second in range(5):
        rate.record(second, NOW + second * 1000)
    assert rate.measure(NOW + 4000) == pytest.approx((2 + 3 + 4) / 2)


@given(st.integers(10, 5000), st.integers(1, 400), st.integers(0, 300))
def test_who_waits_as_told_does_no_more_than_the_bound_in_the_long_run(bound: int, share: int, pause: int) -> None:
    """Records a share of what is allowed in a second, in percent, again and again."""
    rate = Rate(11, 1000)
    now, total, value = NOW, 0.0, bound * share / 100
    while now < NOW + 200_000:
        rate.record(value, now)
        total += value
        now += rate.throttle_ms(bound, now) + pause + 1
    allowed = bound * (now - NOW) / 1000
    assert total <= 1.3 * allowed + 11 * bound + value
