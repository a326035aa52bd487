"""Rows in memory: what is found is what was put in last; how much there is, the budget says."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.state.rocksdb_rows import sorted_by_key
from kohort.spark.state.row_cache import RowBudget, RowCache

MIB = 1024 * 1024
KEYS = st.one_of(st.sampled_from([b"", b"a", b"b", b"a\0", b"12345678", b"123456789"]), st.binary(max_size=20))
LARGE = st.binary(min_size=4, max_size=4).map(lambda few: few * 750)  # each byte drawn would take its time
VALUES = st.one_of(st.none(), st.binary(max_size=20), LARGE)
PUTS = st.lists(st.dictionaries(KEYS, VALUES, max_size=40), max_size=30)


def put(rows: RowCache, records: dict[bytes, bytes | None]) -> None:
    keys, values = pa.array(list(records), pa.binary()), pa.array(list(records.values()), pa.binary())
    rows.put(sorted_by_key(keys, values))


def find(rows: RowCache, *keys: bytes | None) -> list[bytes | None]:
    """Their values; those that aren't there are left out."""
    values, missing = rows.find(pa.array(keys, pa.binary()))
    there = [True] * len(keys) if missing is None else [not each for each in missing.to_pylist()]
    return [value for value, found in zip(values.to_pylist(), there, strict=True) if found]


def numbered(first: int, last: int, size: int = 100) -> dict[bytes, bytes | None]:
    return {b"key %06d" % number: b"%0*d" % (size, number) for number in range(first, last)}


def test_what_was_put_in_last_is_found() -> None:
    rows = RowCache(RowBudget(MIB))
    assert find(rows, b"a") == []
    put(rows, {b"a": b"1", b"b": b"2", b"": b""})
    assert find(rows, b"a", b"b", b"c", b"") == [b"1", b"2", b""]
    put(rows, {b"a": b"longer than before", b"c": b"3"})
    assert find(rows, b"c", None, b"a", b"a") == [b"3", None, b"longer than before", b"longer than before"]


def test_what_is_deleted_is_there_no_more_and_takes_no_room() -> None:
    rows = RowCache(RowBudget(MIB))
    put(rows, {b"a": b"1", b"b": b"2"})
    for start in range(0, 50_000, 1_000):
        put(rows, {b"a": None} | dict.fromkeys(numbered(start, start + 1_000)))
    assert find(rows, b"a", b"b") == [b"2"]


def test_slices_of_columns_are_their_rows() -> None:
    rows = RowCache(RowBudget(MIB))
    keys, values = pa.array([b"0", b"1", b"2", b"3"]), pa.array([b"a", b"b", b"c", b"d"])
    rows.put(sorted_by_key(keys, values).slice(1, 3))
    found, missing = rows.find(keys.slice(1, 2))
    assert (found.to_pylist(), missing) == ([b"b", b"c"], None)
    assert find(rows, b"0", b"3") == []


def test_it_has_the_newest_where_there_is_no_room_for_all() -> None:
    rows = RowCache(RowBudget(MIB))
    for start in range(0, 50_000, 1_000):
        put(rows, numbered(start, start + 1_000))
    assert find(rows, *numbered(0, 40_000)) == []
    newest = numbered(48_000, 50_000)
    assert find(rows, *newest) == list(newest.values())


def test_what_is_touched_stays() -> None:
    rows, hot = RowCache(RowBudget(MIB)), {b"hot": b"x"}
    for start in range(0, 50_000, 1_000):
        put(rows, hot | numbered(start, start + 1_000))
        assert find(rows, b"hot") == [b"x"]


def test_a_row_that_is_too_large_isnt_found_as_it_was_before() -> None:
    rows = RowCache(RowBudget(0))
    put(rows, {b"a": b"1"})
    put(rows, {b"a": b"1" * MIB})
    assert find(rows, b"a") == []


def test_few_rows_take_little_memory_however_often_they_are_written() -> None:
    rows = RowCache(RowBudget(64 * MIB))
    for _ in range(1_000):
        put(rows, numbered(0, 100))
    assert rows.size < MIB
    assert find(rows, *numbered(0, 100)) == list(numbered(0, 100).values())


def test_all_rows_are_found_however_often_they_are_written_where_there_is_room_for_all() -> None:
    rows, all_rows = RowCache(RowBudget(MIB)), numbered(0, 5_000)  # two thirds of it
    keys = list(all_rows)
    for start in range(100):
        put(rows, {key: all_rows[key] for key in keys[start::100] + keys[(start * 7) % 100 :: 100]})
    for _ in range(4):
        for start in range(0, 5_000, 500):
            put(rows, {key: all_rows[key] for key in keys[start : start + 500]})
            assert len(find(rows, *keys)) > 4_800  # some buckets would have to have more than eight


def test_small_rows_are_all_found_too() -> None:
    rows, all_rows = RowCache(RowBudget(64 * MIB)), numbered(0, 20_000, size=6)
    keys = list(all_rows)
    for _ in range(2):
        for start in range(0, 20_000, 100):
            put(rows, {key: all_rows[key] for key in keys[start : start + 100]})
    assert len(find(rows, *keys)) > 19_800


def test_all_that_caches_have_is_within_the_budget() -> None:
    budget = RowBudget(8 * MIB)
    caches = [RowCache(budget) for _ in range(4)]
    for rows in caches:  # and each is idle after that
        put(rows, numbered(0, 100_000))
        assert sum(each.size for each in caches) <= 9 * MIB  # each may have the smallest table
    for rows in caches:
        rows.clear()
        rows.clear()
    put(caches[0], numbered(0, 100_000))
    assert caches[0].size > 4 * MIB


def test_caches_share_their_budget() -> None:
    budget = RowBudget(4 * MIB)
    one, other = RowCache(budget), RowCache(budget)
    put(one, numbered(0, 50_000))
    alone = one.size
    assert MIB < alone <= 4 * MIB
    put(other, numbered(0, 50_000))
    put(one, numbered(50_000, 50_100))
    assert one.size <= 2 * MIB and other.size <= 2 * MIB
    newest = numbered(45_000, 50_100)
    assert find(one, *newest) == list(newest.values())
    other.clear()
    assert other.size == 0 and find(other, b"key 000000") == []
    put(one, numbered(0, 50_000))
    assert one.size == alone


@pytest.mark.parametrize("size", [0, 100_000, MIB])
@given(puts=PUTS)
def test_what_is_found_is_never_old(size: int, puts: list[dict[bytes, bytes | None]]) -> None:
    rows, said = RowCache(RowBudget(size)), dict[bytes, bytes | None]()
    for records in puts:
        put(rows, records)
        said |= records
        keys = [*said, b"never put in"]
        values, missing = rows.find(pa.array(keys, pa.binary()))
        gone = [False] * len(keys) if missing is None else missing.to_pylist()
        assert gone[-1]
        for key, value, is_gone in zip(keys, values.to_pylist(), gone, strict=True):
            if is_gone:
                assert value is None
            else:
                assert value == said[key] and value is not None
