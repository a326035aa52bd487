"""Lets rows pass that are the last of their group so far, or the first, by a column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kohort.spark.jobs.drop_reasons import NO_ORDER
from kohort.spark.jobs.processors.interface import Made, Rows, TaskState
from kohort.spark.jobs.processors.ordering import group_numbers, order_numbers
from kohort.spark.program.operations import KEPT


@dataclass(frozen=True)
class LatestProcessor:
    """Of equal rows the later arrival is the last one, the earlier one the first.

    Attributes:
        by: the column.
        earliest: whether it is the first row of a group that counts.
    """

    by: str
    earliest: bool

    def process(self, rows: Rows, task: TaskState) -> Made:
        state = task.states[KEPT]
        column = rows.columns[self.by].combine_chunks()
        numbers = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        groups, keys = group_numbers(rows.keys.take(pa.array(numbers)))
        prior = state.get(keys)

        # Those of before first, then the rows, group by group.
        values = pa.concat_arrays(
            [prior.rows[self.by].combine_chunks().cast(column.type), column.take(pa.array(numbers))]
        )
        ranks = order_numbers(values)
        several = int(ranks.max(initial=0)) + 1
        ranks = several - 1 - ranks if self.earliest else ranks
        groups = np.concatenate([prior.groups, groups])
        order = np.argsort(groups, kind="stable")
        ordered = groups[order] * several + ranks[order]
        before = np.concatenate([[-1], np.maximum.accumulate(ordered)[:-1]]) if len(order) else ordered
        # What the groups before have is less than this group's least.
        passes = (ordered > before if self.earliest else ordered >= before)[np.argsort(order)]
        passed = np.flatnonzero(passes[len(prior.groups) :])

        of = pa.array(numbers[passed])
        written = groups[len(prior.groups) :][passed]
        last = len(written) - 1 - np.unique(written[::-1], return_index=True)[1]
        state.put(keys.take(pa.array(written[last])), rows.columns.select([self.by]).take(of.take(pa.array(last))))
        return Made(rows.columns.take(of), of, dropped=((NO_ORDER, column.null_count),))
