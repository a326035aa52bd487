"""Stream time: the greatest event time that a task has read, record by record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.time_bounds import LAST_MS
from kohort.spark.runs import runs_of

_NONE: Final = np.iinfo(np.int64).min


def largest_times(partitions: Any, times: Any) -> dict[int, int | None]:
    """The largest time (ms) of each partition, but for those that no window has; None if it has no other."""
    table = pa.table({"partition": partitions, "time": possible(times)})
    largest = table.group_by("partition").aggregate([("time", "max")])
    return dict(zip(largest["partition"].to_pylist(), largest["time_max"].to_pylist(), strict=True))


def possible(times: Any) -> Any:
    """The times, but for those that no window has: null."""
    return pc.if_else(pc.less_equal(times, LAST_MS), times, None)


class StreamTimes:
    """The stream time of each partition, as its records are read in the order of their offsets.

    It goes by the records alone, so it is the same however they are divided into epochs, and fetches.

    Args:
        before: where each partition stands, in ms; one that isn't in it has read nothing yet.
    """

    def __init__(self, before: Mapping[int, int]) -> None:
        self._now = dict(before)

    def advance(self, partitions: pa.Array, times: pa.Array) -> pa.Array:
        """The stream time at each record, its own time (ms) included; null before there is any.

        A time that is null, or that no window has, doesn't move it.
        """
        numbers = partitions.to_numpy(zero_copy_only=False)
        running = pc.fill_null(possible(times), _NONE).to_numpy(zero_copy_only=False).copy()
        order, runs = runs_of(numbers)
        for partition, start, end in runs:
            rows = order[start:end]
            before = self._now.get(partition, _NONE)
            mine = np.maximum(np.maximum.accumulate(running[rows]), before)
            running[rows] = mine
            self._now[partition] = int(mine[-1])
        return pa.array(running, mask=running == _NONE)
