"""The order in which the rows of a branch are sent."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from kohort.spark.epoch import ROWS_SCHEMA, SENT_SCHEMA, SHOWN
from kohort.spark.jobs.stages.stream_time import StreamTimes
from kohort.spark.program.internal_columns import PARTITION, STREAM_TIME

_NONE: Final = np.iinfo(np.int64).min
"""Stands for no stream time: what has none comes first."""


def in_order(rows: pa.Table) -> pa.Table:
    """The rows as `ROWS_SCHEMA`, and with columns of `SENT_SCHEMA` and `SHOWN` if there are any. If there is
    `_stream_time` or `_partition`, in the order in which they are to be sent.

    The task that reads them has a stream time of its own, and finds by their order which are late. So they go by the
    stream time at which their own task read them, otherwise as they are: the rows of one task, whose stream time
    doesn't go back, keep their order, and those of several go as if they had been read side by side.
    """
    if STREAM_TIME in rows.column_names:
        now = rows[STREAM_TIME].combine_chunks()
    elif PARTITION in rows.column_names:  # a transform has lost it: then it goes by the rows that are left
        partitions = rows[PARTITION].fill_null(-1).combine_chunks()
        now = StreamTimes({}).advance(partitions, rows["timestamp"].combine_chunks())
    else:
        own = [*SENT_SCHEMA, pa.field(SHOWN, pa.bool_())]
        more = [each for each in own if each.name in rows.column_names]
        return rows.cast(pa.schema([*ROWS_SCHEMA, *more]))
    order = np.argsort(now.fill_null(_NONE).to_numpy(), kind="stable")
    return rows.take(pa.array(order)).select(ROWS_SCHEMA.names).cast(ROWS_SCHEMA)
