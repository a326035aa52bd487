"""The order in which the rows of a branch are sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
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
    now = _stream_times(rows)
    if now is None:
        own = [*SENT_SCHEMA, pa.field(SHOWN, pa.bool_())]
        more = [each for each in own if each.name in rows.column_names]
        return rows.cast(pa.schema([*ROWS_SCHEMA, *more]))
    order = np.argsort(now, kind="stable")
    return rows.take(pa.array(order)).select(ROWS_SCHEMA.names).cast(ROWS_SCHEMA)


def in_common_order(branches: Sequence[pa.Table]) -> pa.Table:
    """The rows that several branches send to one topic, as `ROWS_SCHEMA`, in an order as `in_order` has it.

    Branches have read the same records. Were one sent after the other, each but the first would seem to be late. Where
    there is nothing to order them by, they go one after the other.
    """
    timed = []
    for rows in branches:
        if (now := _stream_times(rows)) is None:
            return pa.concat_tables([in_order(each) for each in branches])
        timed.append(rows.select(ROWS_SCHEMA.names).cast(ROWS_SCHEMA).append_column(STREAM_TIME, pa.array(now)))
    return in_order(pa.concat_tables(timed))


def _stream_times(rows: pa.Table) -> npt.NDArray[np.int64] | None:
    """The stream time of each row; None if they have none, and nothing that it could be found by."""
    if STREAM_TIME in rows.column_names:
        now = rows[STREAM_TIME].combine_chunks()
    elif PARTITION in rows.column_names:  # a transform has lost it: then it goes by the rows that are left
        partitions = rows[PARTITION].fill_null(-1).combine_chunks()
        now = StreamTimes({}).advance(partitions, rows["timestamp"].combine_chunks())
    else:
        return None
    times: npt.NDArray[np.int64] = now.fill_null(_NONE).to_numpy(zero_copy_only=False)
    return times
