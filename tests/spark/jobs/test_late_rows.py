"""Rows and partials that no window takes are left out, and counted."""

from __future__ import annotations

import pyarrow as pa

from kohort.spark.epoch import ROWS_SCHEMA, EpochStatistics
from kohort.spark.jobs.drop_reasons import NO_WINDOW
from kohort.spark.jobs.stages.late_partials import LATE, drop_outside_windows, in_windows, window_starts

WINDOW = '{"window":"1970-01-01T00:00:05.000Z","origin":"JFK"}'


def test_partials_outside_windows_are_counted_by_the_number_that_they_have() -> None:
    made = [(WINDOW, '{"records":4}'), (LATE, "3"), (NO_WINDOW, "2"), (LATE, "1")]
    rows = [{"key": key.encode(), "value": value.encode()} for key, value in made]
    statistics = EpochStatistics()
    kept = drop_outside_windows(pa.Table.from_pylist(rows, schema=ROWS_SCHEMA), statistics)
    assert kept["key"].to_pylist() == [WINDOW.encode()]
    assert (statistics.late, statistics.reasons) == (4, {NO_WINDOW: 2})


def test_rows_outside_windows_are_counted_one_by_one() -> None:
    statistics = EpochStatistics()
    mask = in_windows(pa.array([WINDOW, LATE, NO_WINDOW, WINDOW]), pa.array([1, 1, 1, 1]), statistics)
    assert mask.to_pylist() == [True, False, False, True]
    assert (statistics.late, statistics.reasons) == (1, {NO_WINDOW: 1})


def test_a_key_says_where_its_window_begins() -> None:
    assert window_starts(pa.array([WINDOW])).to_pylist() == [5_000]
