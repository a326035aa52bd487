"""Leaves out and counts late rows and partials, and those that are in no window; see `kohort.spark.jobs.late_rows`."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.epoch import EpochStatistics
from kohort.spark.jobs.drop_reasons import NO_WINDOW
from kohort.spark.jobs.errors import StoredValueError
from kohort.spark.jobs.stages.stream_time import StreamTimes
from kohort.spark.program.internal_columns import KEY, PARTITION, RECORDS, TIMESTAMP

CLOSED: Final = -62_135_596_800_001
"""The `_window` of what came after its window was closed: before the year 1, where no window begins."""
LATE: Final = "late"
"""The `_key` of what came after its window was closed."""


def in_windows(keys: pa.Array, counts: pa.Array, statistics: EpochStatistics) -> pa.Array:
    """Which rows have the key of a window. The others are counted, each as the number of rows that it stands for."""
    late, none = pc.equal(keys, LATE), pc.equal(keys, NO_WINDOW)
    statistics.late += pc.sum(counts.filter(late)).as_py() or 0
    statistics.drop(NO_WINDOW, pc.sum(counts.filter(none)).as_py() or 0)
    return pc.invert(pc.or_(late, none))


def drop_outside_windows(rows: pa.Table, statistics: EpochStatistics) -> pa.Table:
    """The partials (`ROWS_SCHEMA`) that a window takes. The others are counted: their value is their number."""
    keys = rows["key"].combine_chunks()
    outside = pc.is_in(keys, value_set=pa.array([LATE.encode(), NO_WINDOW.encode()], pa.binary()))
    others = rows.filter(outside)
    counts = others["value"].cast(pa.string()).cast(pa.int64()).combine_chunks()
    in_windows(others["key"].cast(pa.string()).combine_chunks(), counts, statistics)
    return rows.filter(pc.invert(outside))


def drop_late_partials(
    partials: pa.RecordBatch, store: str, closed_after_ms: int, clock: StreamTimes, statistics: EpochStatistics
) -> pa.RecordBatch:
    """The partials that come before their window is closed here, in the order in which they were sent.

    None of their rows came late to the task that they are from, but that one may be behind others. With just one there
    is nothing to drop: it took a partial's rows before a record from beyond the window's end and grace, so it sends the
    partial before any that could close the window: in an earlier epoch, or before it in the same one (`in_order`).

    Args:
        partials: with `_partition`, `_key`, `_time` and `_records`.
        store: where they go, for errors.
        closed_after_ms: how long after its start a window is closed.
        statistics: where those that are left out are counted.
    """
    try:
        starts = window_starts(partials.column(KEY))
    except pa.ArrowInvalid as error:
        raise StoredValueError(f"a key for store {store} has no window: {error}") from None
    now = clock.advance(partials.column(PARTITION), partials.column(TIMESTAMP))
    in_time = pc.fill_null(pc.greater(pc.add(starts, closed_after_ms), now), True)
    statistics.late += pc.sum(partials.column(RECORDS).filter(pc.invert(in_time))).as_py() or 0
    return partials.filter(in_time)


def window_starts(keys: pa.Array) -> pa.Array:
    """The window's start (ms) of keys in a store of windows: `{"window":"2013-01-01T05:00:00.000Z",…}`.

    Raises:
        pa.ArrowInvalid: a key isn't like that.
    """
    text = pc.utf8_slice_codeunits(keys, 11, 35)
    return text.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
