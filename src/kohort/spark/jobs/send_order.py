"""What becomes of the rows that a branch's job has made, in the driver."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.epoch import NO_WINDOW, ROWS_SCHEMA, EpochStatistics
from kohort.spark.jobs.stages.common import LATE, PARTITION, STREAM_TIME, in_windows
from kohort.spark.jobs.stages.stream_time import StreamTimes
from kohort.spark.program.compiled import Terminal, ToPartials

_NONE: Final = np.iinfo(np.int64).min
"""Stands for no stream time: what has none comes first."""


def taken(rows: pa.Table, end: Terminal, read: EpochStatistics) -> pa.Table:
    """The rows without partials that no window takes: these are counted, by the number that is their value."""
    if not isinstance(end, ToPartials) or end.aggregate.window is None:
        return rows
    keys = rows["key"].combine_chunks()
    outside = pc.is_in(keys, value_set=pa.array([LATE.encode(), NO_WINDOW.encode()], pa.binary()))
    others = rows.filter(outside)
    counts = others["value"].cast(pa.string()).cast(pa.int64()).combine_chunks()
    in_windows(others["key"].cast(pa.string()).combine_chunks(), counts, read)
    return rows.filter(pc.invert(outside))


def in_order(rows: pa.Table) -> pa.Table:
    """The rows as `ROWS_SCHEMA`; if `_stream_time` or `_partition` is there, in the order in which they are to be sent.

    Whoever reads them has a stream time of its own, and tells by their order which are late. So they go by the stream
    time at which their task read them, otherwise as they are: the rows of one task, whose stream time doesn't go back,
    keep their order, and those of several go as if they had been read side by side.
    """
    if STREAM_TIME in rows.column_names:
        now = rows[STREAM_TIME].combine_chunks()
    elif PARTITION in rows.column_names:  # a transform has lost it: then it goes by the rows that are left
        partitions = rows[PARTITION].fill_null(-1).combine_chunks()
        now = StreamTimes({}).advance(partitions, rows["timestamp"].combine_chunks())
    else:
        return rows.cast(ROWS_SCHEMA)
    order = np.argsort(now.fill_null(_NONE).to_numpy(), kind="stable")
    return rows.take(pa.array(order)).select(ROWS_SCHEMA.names).cast(ROWS_SCHEMA)
