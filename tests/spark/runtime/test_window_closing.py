from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.runtime.window_closing import Windows, key_bound, later, window_text

HOUR = 3_600_000


def _key(start: int) -> bytes:
    return b'{"window":"' + window_text(start).encode() + b'","origin":"JFK"}'


def test_text() -> None:
    assert window_text(0) == "1970-01-01T00:00:00.000Z"
    assert window_text(1_357_016_400_001) == "2013-01-01T05:00:00.001Z"
    assert window_text(-1) == "1969-12-31T23:59:59.999Z"


def test_nothing_closes_without_grace_or_time() -> None:
    assert Windows(HOUR).closing(0, 10 * HOUR) is None
    assert Windows(HOUR, 0).closing(5, 5) is None
    assert Windows(HOUR, 0).closing(None, None) is None
    assert Windows(HOUR, 0).expiring(0, HOUR) is None


@given(
    st.integers(-(10**12), 10**13), st.one_of(st.none(), st.integers(-(10**12), 10**13)), st.integers(0, 10**13),
    st.integers(1, 10**8), st.integers(0, 10**8),
)  # fmt: skip
def test_each_window_closes_once(start: int, before: int | None, more: int, size: int, grace: int) -> None:
    after = (before or 0) + more
    bounds = Windows(size, grace).closing(before, after)
    was_closed = before is not None and start + size + grace <= before
    is_closed = start + size + grace <= after
    inside = bounds is not None and bounds[0] <= _key(start) < bounds[1]
    assert inside == (is_closed and not was_closed)


def test_it_expires_after_it_is_closed() -> None:
    windows = Windows(HOUR, HOUR, 5 * HOUR)
    assert windows.expiring(None, 5 * HOUR) == (b'{"window":"', key_bound(1))
    assert Windows(HOUR, HOUR, 1).expiring(None, 2 * HOUR) == (b'{"window":"', key_bound(1))


def test_times_beyond_what_text_can_say() -> None:
    assert key_bound(-(10**15)) <= _key(-62_135_596_800_000) and key_bound(10**18) > _key(253_402_300_799_999)


def test_later() -> None:
    assert (later(None, 1), later(2, None), later(1, 2), later(None, None)) == (1, 2, 2, None)
