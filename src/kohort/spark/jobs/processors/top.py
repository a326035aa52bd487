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
from kohort.spark.program.operations import KEPT, PLACE, RANK
from kohort.spark.program.windows import WindowSpec


@dataclass(frozen=True)
class TopProcessor:
    """Of equal rows the earlier arrival is first. The store has a group's rows by their places, without its columns.

    Attributes:
        n: how many ranks there are.
        by: the column.
        group: the group's columns.
        window: whose windows have ranks of their own, with their start as the column `window`.
        tied: whether equal rows have the same rank, and those that are equal to the n-th are kept, too. Then a place
            may come to have no row: it is given with nulls for all but the group, the window and the place.
    """

    n: int
    by: str
    descending: bool
    group: tuple[str, ...]
    window: WindowSpec | None
    tied: bool = False

    def process(self, rows: Rows, task: TaskState) -> Made:
        state = task.states[KEPT]
        taken = self._windows(rows)
        column = rows.columns[self.by].combine_chunks()
        there = column.is_valid().to_numpy(zero_copy_only=False)[taken.rows]
        numbers, starts = taken.rows[there], taken.starts[there]
        keys = rows.keys.take(pa.array(numbers))
        groups, keys = group_numbers(keys if self.window is None else at_time(keys, pa.array(starts)))

        # Those of before first, in their order, then the rows as they came.
        at = PLACE if self.tied else RANK
        prior = state.entries(keys)
        ranked = np.lexsort([prior.rows[at].to_numpy(), prior.groups])
        others = [name for name in rows.columns.column_names if name not in self.group]
        old = prior.rows.take(pa.array(ranked))
        new = rows.columns.select(others).take(pa.array(numbers))
        candidates = pa.concat_tables([old.select(others).cast(new.schema), new]).combine_chunks()
        of = np.concatenate([prior.groups[ranked], groups])
        order = order_numbers(candidates[self.by].combine_chunks())
        order = -order if self.descending else order
        in_order = np.lexsort([order, of])  # stable
        of, order = of[in_order], order[in_order]
        places = places_in_runs(of) + 1
        ranks = places
        if self.tied:
            begins = (places == 1) | (np.diff(order, prepend=0) != 0)
            ranks = places[np.maximum.accumulate(np.where(begins, np.arange(len(places)), 0))]
        before = np.concatenate([old[at].to_numpy(), np.zeros(len(new), np.int64)])
        kept = ranks <= self.n
        changed = kept & (before[in_order] != places)

        # A place goes with the last row of its group in this epoch: by then it has changed.
        last = np.zeros(len(keys), np.int64)
        last[groups] = numbers
        start = np.zeros(len(keys), np.int64)
        start[groups] = starts
        by_time = np.argsort(last[of[changed]], kind="stable")
        chosen, mine = in_order[changed][by_time], of[changed][by_time]
        given = candidates.take(pa.array(chosen))
        if self.tied:
            given = given.append_column(PLACE, pa.array(places[changed][by_time], pa.int32()))
        given = given.add_column(0, RANK, pa.array(ranks[changed][by_time], pa.int32()))
        state.put(state.entry_keys(keys.take(pa.array(mine)), given.select([at])), given)
        if self.tied:
            many = np.bincount(of[kept], minlength=len(keys))
            empty = np.flatnonzero(old[PLACE].to_numpy() > many[prior.groups[ranked]])
            left = old.select([PLACE]).take(pa.array(empty))
            emptied = prior.groups[ranked][empty]
            state.delete(state.entry_keys(keys.take(pa.array(emptied)), left))
            nothing = {each.name: left[PLACE] if each.name == PLACE else pa.nulls(len(left), each.type)
                       for each in given.schema}  # fmt: skip
            given = pa.concat_tables([given, pa.table(nothing, given.schema)])
            mine = np.concatenate([mine, emptied])
            by_time = np.argsort(last[mine], kind="stable")
            given, mine = given.take(pa.array(by_time)), mine[by_time]

        rows_of = pa.array(last[mine])
        group = rows.columns.select(self.group).take(rows_of)
        columns = {name: (group if name in self.group else given)[name] for name in rows.columns.column_names}
        if self.window is not None:
            columns = {"window": timestamps(pa.array(start[mine])), **columns}
        columns |= {name: given[name] for name in ((RANK, PLACE) if self.tied else (RANK,))}
        nulls = len(there) - int(np.count_nonzero(there))
        dropped = ((NO_WINDOW, taken.outside), (NO_ORDER, nulls))
        return Made(pa.table(columns), rows_of, taken.late, dropped=dropped)

    def _windows(self, rows: Rows) -> RowWindows:
        """The windows of rows; without a window each row is in one."""
        if self.window is None:
            count = len(rows.keys)
            return RowWindows(np.arange(count), np.zeros(count, np.int64), 0, 0)
        times = millis(rows.columns[self.window.column].combine_chunks())
        return row_windows(times, rows.stream_times, self.window)
