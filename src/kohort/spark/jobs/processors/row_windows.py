"""Which windows rows are in: as `kohort.spark.jobs.late_rows` says it of aggregates, over Arrow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.time_bounds import FIRST_MS, LAST_MS
from kohort.spark.program.windows import WindowSpec


class RowWindows(NamedTuple):
    """Rows, once for each window that takes them.

    Attributes:
        rows: their numbers, in order.
        starts: of the windows (ms).
        late: how many windows were closed to rows.
        outside: how many rows have no time that windows have.
    """

    rows: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    late: int
    outside: int


def row_windows(times: pa.Array, stream_times: pa.Array, window: WindowSpec) -> RowWindows:
    """The windows of rows by their times (ms), and the stream time at each (ms)."""
    since_ms = window.since_ms
    first = FIRST_MS + window.size_ms if since_ms is None else since_ms
    possible = pc.fill_null(pc.and_(pc.greater_equal(times, first), pc.less_equal(times, LAST_MS)), False)
    numbers = np.flatnonzero(possible.to_numpy(zero_copy_only=False))
    if since_ms is not None:
        return RowWindows(numbers, np.full(len(numbers), since_ms), 0, len(times) - possible.true_count)
    at = times.take(pa.array(numbers)).to_numpy(zero_copy_only=False).astype(np.int64)
    last = at - at % window.slide_ms
    several = -(-window.size_ms // window.slide_ms)
    starts = (last[:, np.newaxis] - np.arange(several - 1, -1, -1) * window.slide_ms).ravel()
    taken = starts > np.repeat(at, several) - window.size_ms
    numbers, starts = np.repeat(numbers, several)[taken], starts[taken]
    late = 0
    if window.grace_ms is not None:
        now = pc.fill_null(stream_times, FIRST_MS).to_numpy(zero_copy_only=False)[numbers]
        open_ = starts + (window.size_ms + window.grace_ms) > now
        late = len(open_) - int(np.count_nonzero(open_))
        numbers, starts = numbers[open_], starts[open_]
    return RowWindows(numbers, starts, late, len(times) - possible.true_count)
