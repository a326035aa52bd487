"""Lets the first row of each group pass: of all, or of those within a span of event time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.drop_reasons import NO_WINDOW
from kohort.spark.jobs.processors.interface import Made, Rows, TaskState
from kohort.spark.jobs.processors.ordering import group_numbers
from kohort.spark.jobs.processors.states import State
from kohort.spark.jobs.processors.times import millis, timestamps
from kohort.spark.jobs.time_bounds import FIRST_MS, LAST_MS
from kohort.spark.program.operations import KEPT

_Numbers = npt.NDArray[np.int64]
_NEVER: Final = 2 * LAST_MS
"""A time (ms) that is near to none."""


@dataclass(frozen=True)
class DedupeProcessor:
    """The first row of each group ever."""

    def process(self, rows: Rows, task: TaskState) -> Made:
        state = task.states[KEPT]
        groups, keys = group_numbers(rows.keys)
        _, first = np.unique(groups, return_index=True)
        new = state.access.lookup(keys).is_null()
        passed = first[new.to_numpy(zero_copy_only=False)]
        state.put(keys.filter(new), rows.columns.take(pa.array(passed)).select([]))
        return _made(rows, passed)


@dataclass(frozen=True)
class DedupeWithinProcessor:
    """The first row of each group, and later those that are further than a span from each that has passed.

    A row that is the span or more behind stream time is late: what it would be compared with may be forgotten.

    Attributes:
        within_ms: the span. The store's buckets are longer by 1 ms, so that each has one row of a group that passed.
    """

    within_ms: int

    def process(self, rows: Rows, task: TaskState) -> Made:
        state = task.states[KEPT]
        first = FIRST_MS + 3 * state.bucket_ms
        possible = pc.and_(pc.greater_equal(rows.times, first), pc.less_equal(rows.times, LAST_MS))
        possible = pc.fill_null(possible, False)
        in_time = pc.fill_null(pc.greater(pc.add(rows.times, self.within_ms), rows.stream_times), True)
        numbers = np.flatnonzero(pc.and_(possible, in_time).to_numpy(zero_copy_only=False))
        groups, keys = group_numbers(rows.keys.take(pa.array(numbers)))
        times = rows.times.take(pa.array(numbers)).to_numpy(zero_copy_only=False).astype(np.int64)

        left = np.flatnonzero(~self._is_repeated(state, keys, groups, times, task.stream_time or 0))
        passed = self._first(groups[left], times[left])
        chosen = left[passed]
        at = pa.array(times[chosen])
        state.put(state.bucketed(keys.take(pa.array(groups[chosen])), at), pa.table({"at": timestamps(at)}))
        dropped = ((NO_WINDOW, len(possible) - possible.true_count),)
        return _made(rows, numbers[chosen], possible.true_count - len(numbers), dropped)

    def _is_repeated(
        self, state: State, keys: pa.Array, groups: _Numbers, times: _Numbers, now: int
    ) -> npt.NDArray[np.bool_]:
        """Which rows are within the span of one that passed in an earlier epoch."""
        repeated = np.zeros(len(times), np.bool_)
        for beside in (-1, 0, 1):
            starts = (times // state.bucket_ms + beside) * state.bucket_ms
            # Nothing has passed that is later than the stream time.
            there = np.flatnonzero(starts <= now)
            _, bucket = np.unique(starts[there], return_inverse=True)
            pairs = groups[there] * (bucket.max(initial=0) + 1) + bucket
            _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
            some = there[first]
            found = state.get(state.bucketed(keys.take(pa.array(groups[some])), pa.array(starts[some])))
            passed = np.full(len(some), _NEVER)
            passed[found.groups] = millis(found.rows["at"].combine_chunks()).to_numpy()
            repeated[there] |= np.abs(times[there] - passed[which]) <= self.within_ms
        return repeated

    def _first(self, groups: _Numbers, times: _Numbers) -> _Numbers:
        """Which of the other rows pass, in their order, by each other alone."""
        some, first = np.unique(groups, return_index=True)
        passed_at = np.zeros(int(groups.max(initial=0)) + 1, np.int64)
        passed_at[some] = times[first]
        # Mostly that is all; the rest goes row by row.
        rest = np.flatnonzero(np.abs(times - passed_at[groups]) > self.within_ms)
        passed: dict[tuple[int, int], int] = {}
        more = []
        for row, group, time in zip(rest.tolist(), groups[rest].tolist(), times[rest].tolist(), strict=True):
            bucket = time // (self.within_ms + 1)
            near = (passed.get((group, bucket + beside), _NEVER) for beside in (-1, 0, 1))
            if all(abs(time - other) > self.within_ms for other in near):
                passed[group, bucket] = time
                more.append(row)
        return np.sort(np.concatenate([first, np.array(more, np.int64)]))


def _made(rows: Rows, passed: _Numbers, late: int = 0, dropped: tuple[tuple[str, int], ...] = ()) -> Made:
    of = pa.array(np.sort(passed))
    return Made(rows.columns.take(of), of, late, dropped=dropped)
