from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kohort.security.quotas.token_bucket import TokenBucket


def test_a_burst_is_taken_and_paid_back() -> None:
    bucket = TokenBucket(2.0, 10, now=0)
    bucket.take(20, 0)
    assert bucket.throttle_ms(0) == 0
    bucket.take(3, 0)
    assert bucket.throttle_ms(0) == 1500
    assert bucket.throttle_ms(1000) == 500
    assert bucket.throttle_ms(1500) == 0
    assert not bucket.idle(1500)
    assert bucket.idle(11_500)


def test_another_rate() -> None:
    bucket = TokenBucket(2.0, 10, now=0)
    bucket.change(1.0, 0)
    assert bucket.rate == 1.0
    bucket.take(10, 0)
    assert bucket.throttle_ms(0) == 0
    bucket.take(1, 0)
    assert bucket.throttle_ms(0) == 1000


@given(st.integers(1, 100), st.integers(1, 20), st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 500))))
def test_who_waits_for_his_debt_takes_no_more_than_burst_and_rate(
    rate: int, seconds: int, steps: list[tuple[int, int]]
) -> None:
    """The last that was taken may go over."""
    bucket, now, taken, last = TokenBucket(rate, seconds, now=0), 0, 0, 0
    for pause, tokens in steps:
        now += pause + bucket.throttle_ms(now + pause)
        bucket.take(tokens, now)
        taken, last = taken + tokens, tokens
        assert taken - last <= rate * seconds + rate * now / 1000 + rate / 500
