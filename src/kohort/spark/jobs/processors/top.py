"""Ranks the first rows of each group by a column, and gives the ranks that change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kohort.spark.jobs.drop_reasons import NO_ORDER, NO_WINDOW
from kohort.spark.jobs.processors.interface import Made, Rows, TaskState
from kohort.spark.jobs.processors.ordering import group_numbers, order_numbers, places_in_runs
from kohort.spark.jobs.processors.row_windows import RowWindows, row_windows
from kohort.spark.jobs.processors.states import at_time
from kohort.spark.jobs.processors.times import millis, timestamps
from kohort.spark.program.operations import KEPT, RANK
from kohort.spark.program.windows import WindowSpec


@dataclass(frozen=True)
class TopProcessor:
    """Of equal rows the earlier arrival ranks first. The store has a group's rows by their ranks, without its columns.

    Attributes:
        n: how many ranks there are.
        by: the column.
        group: the group's columns.
        window: whose windows have ranks of their own, with their start as the column `window`.
    """

    n: int
    by: str
    descending: bool
    group: tuple[str, ...]
    window: WindowSpec | None

    def process(self, rows: Rows, task: TaskState) -> Made:
        state = task.states[KEPT]
        taken = self._windows(rows)
        column = rows.columns[self.by].combine_chunks()
        there = column.is_valid().to_numpy(zero_copy_only=False)[taken.rows]
        numbers, starts = taken.rows[there], taken.starts[there]
        keys = rows.keys.take(pa.array(numbers))
        groups, keys = group_numbers(keys if self.window is None else at_time(keys, pa.array(starts)))

        # Those of before first, in their order, then the rows as they came.
        prior = state.entries(keys)
        ranked = np.lexsort([prior.rows[RANK].to_numpy(), prior.groups])
        others = [name for name in rows.columns.column_names if name not in self.group]
        old = prior.rows.take(pa.array(ranked))
        new = rows.columns.select(others).take(pa.array(numbers))
        candidates = pa.concat_tables([old.select(others).cast(new.schema), new]).combine_chunks()
        of = np.concatenate([prior.groups[ranked], groups])
        order = order_numbers(candidates[self.by].combine_chunks())
        order = np.lexsort([-order if self.descending else order, of])  # stable
        ranks = places_in_runs(of[order]) + 1
        before = np.concatenate([old[RANK].to_numpy(), np.zeros(len(new), np.int64)])
        changed = (ranks <= self.n) & (before[order] != ranks)

        # A rank goes with the last row of its group in this epoch: by then it has changed.
        last = np.zeros(len(keys), np.int64)
        last[groups] = numbers
        start = np.zeros(len(keys), np.int64)
        start[groups] = starts
        chosen, ranks = order[changed], ranks[changed]
        in_time = np.argsort(last[of[chosen]], kind="stable")
        chosen, ranks = chosen[in_time], pa.array(ranks[in_time], pa.int32())
        mine = pa.array(of[chosen])
        kept = candidates.take(pa.array(chosen)).add_column(0, RANK, ranks)
        state.put(state.entry_keys(keys.take(mine), kept.select([RANK])), kept)

        rows_of = pa.array(last).take(mine)
        group = rows.columns.select(self.group).take(rows_of)
        columns = {name: (group if name in self.group else kept)[name] for name in rows.columns.column_names}
        if self.window is not None:
            columns = {"window": timestamps(pa.array(start).take(mine)), **columns}
        nulls = len(there) - int(np.count_nonzero(there))
        dropped = ((NO_WINDOW, taken.outside), (NO_ORDER, nulls))
        return Made(pa.table({**columns, RANK: ranks}), rows_of, taken.late, dropped=dropped)

    def _windows(self, rows: Rows) -> RowWindows:
        """The windows of rows; without a window each row is in one."""
        if self.window is None:
            count = len(rows.keys)
            return RowWindows(np.arange(count), np.zeros(count, np.int64), 0, 0)
        times = millis(rows.columns[self.window.column].combine_chunks())
        return row_windows(times, rows.stream_times, self.window)
