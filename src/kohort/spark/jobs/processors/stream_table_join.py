"""Joins a stream to a table whose upserts come through the same topic: a row meets the table as it is just then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kohort.spark.jobs.drop_reasons import NO_KEY
from kohort.spark.jobs.processors.interface import Made, Rows, TaskState
from kohort.spark.jobs.processors.ordering import group_numbers
from kohort.spark.jobs.processors.table_rows import TableRows, flags, side_numbers, valid
from kohort.spark.program.internal_columns import DELETED
from kohort.spark.program.operations import RIGHT
from kohort.spark.program.table_operations import StreamTableJoin


@dataclass(frozen=True)
class StreamTableJoinProcessor:
    """A join of a stream and a table.

    Attributes:
        output: the columns of what it gives: the stream's, then the table's.
    """

    join: StreamTableJoin
    output: pa.Schema

    def process(self, rows: Rows, task: TaskState) -> Made:
        keyed = valid(rows.columns, self.join.on)
        groups, keys = group_numbers(rows.keys)
        upserts = side_numbers(rows.columns) == 1
        deleted = flags(rows.columns[DELETED])
        table = TableRows.upserted(task.states[RIGHT], keys, groups, rows.columns, upserts & keyed, deleted)
        found = np.where(keyed, table.after, -1)
        wanted = np.flatnonzero(~upserts & ((found >= 0) | (self.join.how == "left")))
        left = rows.columns.select(self.join.stream).take(pa.array(wanted))
        right = table.take(found[wanted]).select(self.join.added)
        made = pa.Table.from_arrays([*left.columns, *right.columns], names=self.output.names)
        return Made(made, pa.array(wanted), dropped=((NO_KEY, int((upserts & ~keyed).sum())),))
