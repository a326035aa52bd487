"""Joins two tables by their keys: the joined row changes whenever a row of either side does.

Both sides are upserts of one topic. Each row is answered by itself, in the topic's order: the result's row as it is
then, or its deletion; nothing where there was no result before and is none afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kohort.spark.jobs.drop_reasons import NO_KEY
from kohort.spark.jobs.processors.interface import Made, Rows, TaskState
from kohort.spark.jobs.processors.ordering import group_numbers
from kohort.spark.jobs.processors.table_rows import TableRows, flags, side_numbers, valid
from kohort.spark.program.internal_columns import DELETED
from kohort.spark.program.operations import LEFT, RIGHT
from kohort.spark.program.table_operations import TableJoin

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TableJoinProcessor:
    """A join of two tables.

    Attributes:
        output: the columns of what it gives: the key's, the left side's others, the right side's, `_deleted`.
    """

    join: TableJoin
    output: pa.Schema

    def process(self, rows: Rows, task: TaskState) -> Made:
        keyed = valid(rows.columns, self.join.on)
        groups, keys = group_numbers(rows.keys)
        sides, deleted = side_numbers(rows.columns), flags(rows.columns[DELETED])
        left, right = (
            TableRows.upserted(task.states[name], keys, groups, rows.columns, keyed & (sides == side), deleted)
            for side, name in enumerate((LEFT, RIGHT))
        )
        before, after = self._exists(left.before, right.before), self._exists(left.after, right.after)
        given_rows = np.flatnonzero(keyed & (before | after))
        exists = after[given_rows]
        parts = [rows.columns.take(pa.array(given_rows)).select(self.join.on)]
        for table, names in ((left, self.join.left), (right, self.join.right)):
            parts.append(table.take(np.where(exists, table.after[given_rows], -1)).select(names))
        columns = [column for part in parts for column in part.columns]
        made = pa.Table.from_arrays([*columns, pa.array(~exists)], names=self.output.names)
        return Made(made, pa.array(given_rows), dropped=((NO_KEY, int(len(keyed) - keyed.sum())),))

    def _exists(self, left: _Ints, right: _Ints) -> npt.NDArray[np.bool_]:
        """Where there is a joined row."""
        match self.join.how:
            case "inner":
                return (left >= 0) & (right >= 0)
            case "left":
                return left >= 0
        return (left >= 0) | (right >= 0)
