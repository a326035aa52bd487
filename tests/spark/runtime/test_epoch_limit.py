from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.runtime.epoch_limit import EpochLimit, LimitSettings, share


def test_it_grows_while_epochs_are_quick_and_full() -> None:
    limit = EpochLimit(LimitSettings(first_records=1_000, most_records=5_000, target_ms=1_000))
    seen = []
    for _ in range(5):
        seen.append(limit.records)
        limit.took(400, limit.records, limit.records, limit.records * 10)
    assert seen == [1_000, 2_000, 4_000, 5_000, 5_000]


def test_the_quicker_epochs_are_the_more_it_grows() -> None:
    limit = EpochLimit(LimitSettings(first_records=1_000, most_records=100_000, target_ms=1_000))
    seen = []
    for ms in (0, 200, 320, 450, 700):
        limit.took(ms, limit.records, limit.records, limit.records * 10)
        seen.append(limit.records)
    assert seen == [4_000, 16_000, 48_000, 96_000, 96_000]


def test_epochs_over_what_was_compacted_grow_too() -> None:
    limit = EpochLimit(LimitSettings(first_records=1_000, target_ms=1_000))
    limit.took(400, 1_000, 10, 100)
    assert limit.records == 2_000


def test_a_small_epoch_says_nothing_of_large_ones() -> None:
    limit = EpochLimit(LimitSettings(first_records=1_000, target_ms=1_000))
    limit.took(100, 10, 10, 100)
    assert limit.records == 1_000
    limit.took(9_000, 10, 10, 100)
    assert limit.records == 1_000


def test_it_shrinks_when_epochs_are_slow() -> None:
    limit = EpochLimit(LimitSettings(first_records=60_000, target_ms=1_000))
    limit.took(2_000, 60_000, 60_000, 600_000)
    assert limit.records == 30_000


def test_slow_epochs_grow_to_what_costs_no_more() -> None:
    limit = EpochLimit(LimitSettings(first_records=5_000, target_ms=1_000))
    for _ in range(10):
        limit.took(9_000, limit.records, limit.records, limit.records * 10)
    assert limit.records == 20_000


def test_it_shrinks_when_epochs_fail() -> None:
    limit = EpochLimit(LimitSettings(first_records=4_000, target_ms=1_000))
    limit.took(100, 10, 10, 100)
    limit.failed()
    assert limit.records == 2_000
    for _ in range(10):
        limit.failed()
    assert limit.records == 500


def test_it_shrinks_at_once_when_it_knows_nothing_of_the_records() -> None:
    limit = EpochLimit(LimitSettings())
    limit.failed()
    assert limit.records == 500


def test_in_between_it_stays() -> None:
    limit = EpochLimit(LimitSettings(first_records=40_000, target_ms=1_000))
    limit.took(1_100, 40_000, 40_000, 400_000)
    limit.took(700, 40_000, 40_000, 400_000)
    assert limit.records == 40_000


def test_large_records_make_small_epochs() -> None:
    limit = EpochLimit(LimitSettings(first_records=4_000, most_bytes=1_000_000, target_ms=1_000))
    limit.took(700, 100, 100, 100 * 10_000)
    assert limit.records == 100
    limit.took(700, 1, 1, 10_000_000)
    assert limit.records == 1  # it reads on, however large they are


def test_what_some_do_not_need_goes_to_others() -> None:
    assert share(100, {"a": 1_000, "b": 10, "c": 0, "d": 1_000}) == {"a": 45, "b": 10, "d": 45}
    assert share(100, {"a": 5, "b": 10}) == {"a": 5, "b": 10}
    assert share(100, {"a": -3}) == {}


@given(st.integers(1, 1_000), st.dictionaries(st.integers(0, 20), st.integers(-5, 500), max_size=12))
def test_shares_are_fair(limit: int, waiting: dict[int, int]) -> None:
    given_ = share(limit, waiting)
    there = {key: count for key, count in waiting.items() if count > 0}
    assert sum(given_.values()) == min(limit, sum(there.values()))
    assert all(0 < count <= there[key] for key, count in given_.items())
    hungry = [given_.get(key, 0) for key, count in there.items() if given_.get(key, 0) < count]
    if hungry:
        assert max(given_.values(), default=0) <= max(hungry) + 1
        assert max(hungry) - min(hungry) <= 1
