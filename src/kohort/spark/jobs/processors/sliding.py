"""Finds the windows of rows that slide: one that ends with each row, and one that begins after it, if any row is there.

A window is there once it has a row, and ends with one of its rows or begins 1 ms after another. It takes rows until it
is closed: so which there are, and what is in them, doesn't depend on the order of rows in time, nor on epochs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.drop_reasons import NO_WINDOW
from kohort.spark.jobs.processors.interface import Made, Rows, TaskState
from kohort.spark.jobs.processors.near_rows import Spans, kept_and_new, rows_between
from kohort.spark.jobs.processors.ordering import counted, distinct_pairs, group_numbers, int64s
from kohort.spark.jobs.processors.states import State
from kohort.spark.jobs.time_bounds import FIRST_MS, LAST_MS
from kohort.spark.program.internal_columns import OFFSET, TIMESTAMP, WINDOW_START
from kohort.spark.program.operations import KEPT
from kohort.spark.program.sliding_windows import Slide

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]
_NEVER: Final = np.iinfo(np.int64).min // 2
"""Before any window closes (ms)."""


class _Pool(NamedTuple):
    """Rows that were kept, then new ones.

    Attributes:
        rows: the columns that are kept.
        keys: numbers of their groups.
        times: in ms.
        closed: of each, the time (ms) before which windows end that it came too late for. Of those that were kept it
            counts no more: windows that were closed to them are closed to all.
        arrived: which of the new rows each is; -1 for those that were kept.
    """

    rows: pa.Table
    keys: _Ints
    times: _Ints
    closed: _Ints
    arrived: _Ints


class _Windows(NamedTuple):
    """Windows, by their groups and starts (ms)."""

    keys: _Ints
    starts: _Ints


@dataclass(frozen=True)
class SlidingProcessor:
    """Gives each new row once for each window that takes it, and all rows of a window that there wasn't before.

    Attributes:
        group: the columns that are grouped by, which aren't kept with rows.
    """

    windows: Slide
    group: tuple[str, ...]

    def process(self, rows: Rows, task: TaskState) -> Made:
        state, length = task.states[KEPT], self.windows.difference_ms
        least, most = FIRST_MS + 2 * state.bucket_ms, LAST_MS - 2 * state.bucket_ms
        possible = pc.fill_null(pc.and_(pc.greater_equal(rows.times, least), pc.less_equal(rows.times, most)), False)
        there = possible.to_numpy(zero_copy_only=False)
        times = int64s(pc.fill_null(rows.times, 0))
        now = int64s(pc.fill_null(rows.stream_times, _NEVER))
        closed = now - self.windows.grace_ms
        # The last window of a row begins after it.
        taken = there & (times + 1 + length > closed)
        new = np.flatnonzero(taken)
        codes, groups = group_numbers(rows.keys.take(pa.array(new)))
        pool = self._pool(rows, new, codes, groups, times, closed, state)
        windows, members = self._changed(pool)

        group_rows = np.zeros(len(groups), np.int64)
        group_rows[codes] = new
        made = pool.rows.take(pa.array(members))
        grouped = rows.columns.select(self.group).take(pa.array(group_rows[pool.keys[members]]))
        columns = {name: (grouped if name in self.group else made)[name] for name in rows.columns.column_names}
        columns[WINDOW_START] = pa.chunked_array([pa.array(windows)])
        arrived = pool.arrived[members]
        state.append(
            state.bucketed(groups.take(pa.array(codes)), pa.array(times[new])),
            pool.rows.slice(len(pool.keys) - len(new)),
            rows.offsets.take(pa.array(new)),
        )
        return Made(
            pa.table(columns),
            pa.array(arrived, mask=arrived < 0),
            int(np.count_nonzero(there & ~taken)),
            pa.array(pool.times[members]),
            ((NO_WINDOW, len(there) - int(np.count_nonzero(there))),),
            made[OFFSET].combine_chunks(),
        )

    def _pool(
        self, rows: Rows, new: _Ints, codes: _Ints, groups: pa.Array, times: _Ints, closed: _Ints, state: State
    ) -> _Pool:
        """New rows, and those that were kept of their groups and are near: whose windows may have the row, too."""
        reach = self.windows.difference_ms + 1
        near = Spans(codes, times[new] - reach, times[new] + reach)
        columns = rows.columns.append_column(TIMESTAMP, pa.array(times)).append_column(OFFSET, rows.offsets)
        pool, keys, arrived = kept_and_new(state, groups, near, columns, codes, new)
        return _Pool(
            pool,
            keys,
            pool[TIMESTAMP].to_numpy().astype(np.int64),
            np.concatenate([np.full(len(arrived) - len(new), _NEVER), closed[new]]),
            arrived,
        )

    def _changed(self, pool: _Pool) -> tuple[_Ints, _Ints]:
        """Windows that new rows change, by their starts (ms), each with the rows that are to be given for it.

        Rows that were kept are only counted but for windows that there weren't before: a new row has as many windows
        as rows that are near, and all of these with each other would be their square.
        """
        length, is_new = self.windows.difference_ms, pool.arrived >= 0
        new, old = np.flatnonzero(is_new), np.flatnonzero(~is_new)
        own = self._own_starts(pool.times)
        windows = self._near(pool, own)
        ends = windows.starts + length

        def within(rows: _Ints, some: _Ints) -> tuple[_Ints, _Ints]:
            """Some of the windows with those of the rows that are in them: a pair for each."""
            first, count, order = rows_between(
                pool.keys[rows], pool.times[rows], windows.keys[some], windows.starts[some], ends[some]
            )
            return np.repeat(some, count), rows[order[np.repeat(first, count) + counted(count)]]

        def have(rows: _Ints, times: _Ints, least: _Ints, most: _Ints) -> _Bools:
            """Which windows have a row with such a time."""
            _, count, _ = rows_between(pool.keys[rows], times[rows], windows.keys, least, most)
            return count > 0

        def after(rows: _Ints) -> _Bools:
            """Which windows begin after such a row."""
            return have(rows, pool.times, windows.starts - 1, windows.starts - 1)

        of, row = within(new, np.arange(len(windows.starts)))
        takes = ends[of] >= pool.closed[row]
        of, row = of[takes], row[takes]
        own_of_new = np.bincount(of[own[row] == windows.starts[of]], minlength=len(windows.starts)) > 0
        own_of_old = have(old, own, windows.starts, windows.starts)
        after_old = after(old)
        was_there = have(old, pool.times, windows.starts, ends) & (own_of_old | after_old)
        is_there = own_of_old | own_of_new | after_old | after(new)
        given = is_there[of]
        of_old, row_old = within(old, np.flatnonzero(is_there & ~was_there))
        of, row = np.concatenate([of[given], of_old]), np.concatenate([row[given], row_old])
        in_order = np.lexsort([row, of])
        return windows.starts[of[in_order]], row[in_order]

    def _near(self, pool: _Pool, own: _Ints) -> _Windows:
        """All windows that there may be, and that a new row may change: it is in one, or just before it."""
        keys, starts = distinct_pairs(np.concatenate([pool.keys, pool.keys]), np.concatenate([own, pool.times + 1]))
        is_new = pool.arrived >= 0
        ends = starts + self.windows.difference_ms
        _, near, _ = rows_between(pool.keys[is_new], pool.times[is_new], keys, starts - 1, ends)
        return _Windows(keys[near > 0], starts[near > 0])

    def _own_starts(self, times: _Ints) -> _Ints:
        """Where the windows begin that end with rows: but none begins before 1970 that ends later."""
        starts = times - self.windows.difference_ms
        return np.where((times >= 0) & (starts < 0), 0, starts)
