"""Rows are grouped and folded in Arrow, beside plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.jobs.errors import AggregationError
from kohort.spark.jobs.kll_sketches import quantiles
from kohort.spark.jobs.stages import row_groups
from kohort.spark.jobs.stages.row_groups import RowGroups, StateColumn, group_rows_stage
from kohort.spark.program.aggregates.columnwise import Fold, Sketch

ROWS = pa.schema([
    ("_window", pa.int64()), ("_group0", pa.string()), ("_time", pa.int64()), ("_of0", pa.int32()),
    ("_of1", pa.float64()), ("_of2", pa.bool_()),
])  # fmt: skip
GROUPS = RowGroups(
    "a",
    2,
    (
        StateColumn(Fold.COUNT, None, pa.int64()),
        StateColumn(Fold.COUNT, 2, pa.int64()),
        StateColumn(Fold.SUM, 0, pa.int64()),
        StateColumn(Fold.SUM, 0, pa.float64()),
        StateColumn(Fold.MIN, 0, pa.int32()),
        StateColumn(Fold.MIN, 1, pa.float64()),
        StateColumn(Fold.MAX, 1, pa.float64()),
        StateColumn(Sketch(200, whole=True), 0, pa.binary()),
        StateColumn(Sketch(200, whole=False), 1, pa.binary()),
    ),
    checked=True,
)
Row = tuple[Any, ...]

whole = st.none() | st.integers(-(2**31), 2**31 - 1)
number = st.none() | st.integers(-1000, 1000).map(float) | st.sampled_from([math.nan, math.inf, -math.inf])
keys = (st.none() | st.integers(0, 2), st.none() | st.sampled_from(["", "a", "b"]))
rows = st.lists(st.tuples(*keys, st.none() | st.integers(0, 9), whole, number, st.none() | st.just(True)), max_size=30)


def batches(given: Sequence[Row], sizes: Iterable[int] = (7,)) -> list[pa.RecordBatch]:
    size = next(iter(sizes))
    parts = [given[start : start + size] for start in range(0, len(given), size)]
    return [
        pa.RecordBatch.from_arrays(
            [pa.array(column, kind) for column, kind in zip(zip(*part, strict=True), ROWS.types, strict=True)],
            schema=ROWS,
        )
        for part in parts
    ]


def expected(given: Sequence[Row]) -> dict[tuple[Any, Any], tuple[Any, ...]]:
    by_key: dict[tuple[Any, Any], list[Row]] = {}
    for row in given:
        by_key.setdefault(row[:2], []).append(row[2:])
    return {key: _state(some) for key, some in by_key.items()}


def _state(some: list[Row]) -> tuple[Any, ...]:
    times, ints, floats, there = [[each for each in column if each is not None] for column in zip(*some, strict=True)]
    real = sorted(each for each in floats if each == each)
    nan = [math.nan] if len(real) < len(floats) else []
    total = sum(ints) if ints else None
    return (
        max(times, default=None), len(some), len(some), len(there), total, total, min(ints, default=None),
        next(iter([*real, *nan]), None), next(iter([*nan, *real[::-1]]), None),
        _median(sorted(ints)), _median(real),
    )  # fmt: skip


def _median(values: list[Any]) -> Any:
    return values[(len(values) + 1) // 2 - 1] if values else None


def found(partials: pa.RecordBatch | None) -> dict[tuple[Any, Any], tuple[Any, ...]]:
    if partials is None:
        return {}
    sketches = [quantiles(partials.column(f"_state{place}"), [0.5], place == 7)[0].to_pylist() for place in (7, 8)]
    columns = [column.to_pylist() for column in partials.columns[:-2]]
    made = list(zip(*columns, *sketches, strict=True))
    assert len({row[:2] for row in made}) == len(made)
    return {row[:2]: row[2:] for row in made}


def same(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    return list(one) == list(other) and all(repr(one[key]) == repr(_like(one[key], other[key])) for key in one)


def _like(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sums of whole numbers in DOUBLE as such, as far as they are exact there."""
    return tuple(
        float(theirs) if isinstance(mine, float) and theirs is not None else theirs
        for mine, theirs in zip(one, other, strict=True)
    )


@given(rows)
def test_rows_are_folded_by_group(given: list[Row]) -> None:
    assert same(found(GROUPS.of_rows(iter(batches(given)))), expected(given))


@given(rows, st.integers(1, 5))
def test_partials_of_parts_make_those_of_all(given: list[Row], size: int) -> None:
    parts = [partial for batch in batches(given, [size]) for partial in group_rows_stage(GROUPS)(iter([batch]))]
    assert same(found(GROUPS.of_partials(iter(parts))), expected(given))


def test_many_rows_are_folded_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [(number % 2, "a", number, number, float(number), True) for number in range(30)]
    calls: list[int] = []
    fold = RowGroups._of_rows
    monkeypatch.setattr(row_groups, "_ROWS_AT_ONCE", 10)
    monkeypatch.setattr(RowGroups, "_of_rows", lambda self, rows: (calls.append(rows.num_rows), fold(self, rows))[1])
    assert same(found(GROUPS.of_rows(iter(batches(given, [4])))), expected(given))
    assert calls == [12, 12, 6]


def test_many_partials_are_given_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "_PARTIALS_AT_ONCE", 4)
    given = [(number, "a", number, number, float(number), True) for number in range(10)]
    parts = list(group_rows_stage(GROUPS)(iter(batches(given))))
    assert [part.num_rows for part in parts] == [4, 4, 2]
    assert same(found(GROUPS.of_partials(iter(parts))), expected(given))


def test_nothing_makes_no_partials() -> None:
    empty = pa.RecordBatch.from_pylist([], schema=ROWS)
    assert GROUPS.of_rows(iter([])) is None and GROUPS.of_rows(iter([empty])) is None
    assert list(group_rows_stage(GROUPS)(iter([empty]))) == []


@pytest.mark.parametrize("values", [[2**63 - 1, 1], [-(2**63), -1]])
def test_a_sum_that_overflows_fails_or_wraps_as_in_spark(values: list[int]) -> None:
    def run(*, checked: bool, part: bool) -> Any:
        column = StateColumn(Fold.SUM, 0, pa.int64())
        groups = RowGroups("totals", 1, (column,), checked)
        rows = [pa.RecordBatch.from_pydict({"k": [1, 2], "_time": [0, 0], "_of0": [each, 1]}) for each in values]
        if not part:
            return groups.of_rows(iter(rows))
        return groups.of_partials(iter([groups._of_rows(pa.Table.from_batches([each])) for each in rows]))

    for part in (False, True):
        with pytest.raises(AggregationError, match="'totals': a sum is too large"):
            run(checked=True, part=part)
        total, other = run(checked=False, part=part).column("_state0").to_pylist()
        assert (total, other) == ((sum(values) + 2**63) % 2**64 - 2**63, 2)


def test_a_sum_on_the_way_to_which_64_bits_are_not_enough_is_right() -> None:
    groups = RowGroups("totals", 1, (StateColumn(Fold.SUM, 0, pa.int64()),), checked=True)
    values = [2**63 - 1, 5, -10, None]
    rows = pa.RecordBatch.from_pydict({"k": [1] * 4, "_time": [0] * 4, "_of0": values})
    made = groups.of_rows(iter([rows]))
    assert made is not None and made.column("_state0").to_pylist() == [2**63 - 6]
