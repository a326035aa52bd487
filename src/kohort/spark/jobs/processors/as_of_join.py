"""Joins a stream to a table as of each row's event time: with the version of its key that was valid then.

Both sides are rows of one topic, in whose order everything goes. A table's upsert is a version from its time on, until
the next one's, whichever comes first; of equal times the one that comes last counts. A row meets the versions that came
before it. With a grace it first waits until the stream's largest time has passed it by that, and meets those that came
before then.

The history goes back from what both sides have reached, the lesser of their largest times: one side may be read long
before the other, as when old records are read again. Before both have a time, all is within it. An upsert that is older
is left out. A row that is older meets the last version of its key, if that was valid by then already, and no other.
Versions that ended before the history are taken out, and a key whose last version is a deletion from before it is
forgotten.

An epoch reads the versions that were valid from the times on that it asks for, and those that come next, of whatever
history: see `kohort.spark.jobs.processors.versions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.arrow_key_encoding import group_keys
from kohort.spark.jobs.drop_reasons import NO_KEY, NO_WINDOW
from kohort.spark.jobs.processors.interface import Made, Rows, TaskState
from kohort.spark.jobs.processors.ordering import group_numbers, int64s
from kohort.spark.jobs.processors.states import (
    TASK_KEY,
    State,
    at_time,
    before_time,
    joined_keys,
    times_of,
    without_time,
)
from kohort.spark.jobs.processors.table_rows import side_numbers, valid
from kohort.spark.jobs.processors.versions import Versions, ranges_of
from kohort.spark.jobs.time_bounds import FIRST_MS, LAST_MS
from kohort.spark.program.operations import CLOCK, OFFSET_COLUMN, TIME_COLUMN
from kohort.spark.program.table_operations import ENDING, PENDING, SINCE, VERSIONS, AsOfJoin

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]
_NONE: Final = FIRST_MS - LAST_MS
"""A time (ms) before all others, from which lengths can be subtracted."""


class _Asking(NamedTuple):
    """Rows of the stream that are joined in this epoch.

    Attributes:
        rows: the stream's columns.
        keys: of their groups.
        times: in ms.
        due: the stream's time (ms) from which on each is judged.
        offsets: of their records in the topic.
        arrived: which of the epoch's rows each is; -1 for those that waited before it.
    """

    rows: pa.Table
    keys: pa.Array
    times: _Ints
    due: _Ints
    offsets: _Ints
    arrived: _Ints


@dataclass(frozen=True)
class AsOfJoinProcessor:
    """A join of a stream and the versions of a table.

    Attributes:
        output: the columns of what it gives: the stream's, then the table's.
    """

    join: AsOfJoin
    output: pa.Schema

    def process(self, rows: Rows, task: TaskState) -> Made:
        count = rows.columns.num_rows
        keyed = valid(rows.columns, self.join.on)
        upserts = side_numbers(rows.columns) == 1
        times, timed = _known(pc.if_else(pa.array(upserts), rows.columns[SINCE].combine_chunks(), rows.times))
        clock = _Clock.read(task.states[CLOCK])
        table_times = _running(np.where(upserts & keyed & timed, times, _NONE), clock.table)
        stream_times = _running(np.where(~upserts & timed, times, _NONE), clock.stream)
        horizons = np.minimum(table_times, stream_times) - self.join.history_ms
        versions = upserts & keyed & timed & (times >= horizons)

        now, numbers = int(stream_times[-1]), np.arange(count)
        due = np.where(keyed & timed, times + self.join.grace_ms, _NONE)
        waits = ~upserts & (_judged_at(stream_times, due, numbers) == count)
        self._wait(rows, times, due, np.flatnonzero(waits), task.states[PENDING])
        asking = self._asking(rows, times, due, np.flatnonzero(~upserts & ~waits), now, task.states[PENDING])
        at = _judged_at(stream_times, asking.due, asking.arrived)

        ended = _Ended.read(int(horizons[-1]), task.states[ENDING])
        groups, keys = group_numbers(pa.concat_arrays([rows.keys, asking.keys, ended.groups]))
        of_rows, of_asking, of_ended = np.split(groups, [count, count + len(at)])
        new = np.flatnonzero(versions)
        known = valid(asking.rows, self.join.on) & (asking.times != _NONE)
        asked = ranges_of(
            np.concatenate([of_rows[new], of_asking[known]]),
            np.concatenate([times[new], asking.times[known]]),
            self.join.history_ms,
        )
        table = Versions.read(
            task.states[VERSIONS],
            keys,
            asked.and_others(of_ended, ended.times, int(horizons[-1])),
            rows.columns.take(pa.array(new)),
            of_rows[new],
            times[new],
            new,
        )
        late = (asking.times != _NONE) & (asking.times < horizons[at])
        which = table.valid_at(of_asking, asking.times, at, last_only=late)
        which[~known] = -1
        self._keep(table, keys, np.unique(np.concatenate([of_rows[new], of_ended])), int(horizons[-1]), task)
        clock.write(task.states[CLOCK], int(table_times[-1]), now)

        given = np.flatnonzero((which >= 0) | (self.join.how == "left"))
        given = given[np.lexsort([asking.offsets[given], asking.times[given], at[given]])]
        left = asking.rows.take(pa.array(given))
        right = table.rows.take(pa.array(which[given], mask=which[given] < 0)).select(self.join.added)
        made = pa.Table.from_arrays([*left.columns, *right.columns], names=self.output.names)
        of, given_times = pa.array(at[given]), asking.times[given]
        # Windows take a row that has waited as one that comes when it was due, however far time has jumped then.
        waited = pa.array(asking.arrived[given] != at[given])
        seen_at = pc.if_else(waited, pa.array(asking.due[given]), rows.stream_times.take(of))
        missed = int((upserts & keyed & timed & ~versions).sum() + (late & (which < 0)).sum())
        dropped = ((NO_KEY, int((upserts & ~keyed).sum())), (NO_WINDOW, int((upserts & keyed & ~timed).sum())))
        made_at = pa.array(given_times, mask=given_times == _NONE)
        return Made(made, of, missed, made_at, dropped, stream_times=seen_at)

    def _asking(self, rows: Rows, times: _Ints, due: _Ints, own: _Ints, now: int, state: State) -> _Asking:
        """Rows that have waited long enough by the stream's time, in ms, and those of the epoch's rows `own`.

        Those that have waited are due when they were kept for, which another grace doesn't change.
        """
        kept, kept_due = state.columns.empty_table(), np.array([], np.int64)
        if now != _NONE:
            _, keys, values = state.access.scan(*before_time(min(now + 1, LAST_MS)))
            state.delete(keys)
            kept, kept_due = state.decoded(values), int64s(times_of(keys))
        names = self.join.stream
        groups = group_keys(self.join.on, [kept[name].combine_chunks() for name in self.join.on])
        mine = rows.columns.select(names).take(pa.array(own)).cast(kept.select(names).schema)
        return _Asking(
            pa.concat_tables([kept.select(names), mine]),
            pa.concat_arrays([groups.cast(pa.string()), rows.keys.take(pa.array(own)).cast(pa.string())]),
            np.concatenate([_ints(kept[TIME_COLUMN]), times[own]]),
            np.concatenate([kept_due, due[own]]),
            np.concatenate([_ints(kept[OFFSET_COLUMN]), int64s(rows.offsets)[own]]),
            np.concatenate([np.full(kept.num_rows, -1), own]),
        )

    def _wait(self, rows: Rows, times: _Ints, due: _Ints, own: _Ints, state: State) -> None:
        """Keeps the epoch's rows `own` under the times at which they are due."""
        if not len(own):
            return
        numbers = pa.array(own)
        offsets = rows.offsets.take(numbers)
        kept = rows.columns.select(self.join.stream).take(numbers).append_column(TIME_COLUMN, pa.array(times[own]))
        named = joined_keys(rows.keys.take(numbers), group_keys(["at"], [offsets]))
        keys = at_time(named, pa.array(np.minimum(due[own], LAST_MS)))
        state.put(keys, kept.append_column(OFFSET_COLUMN, offsets))

    def _keep(self, table: Versions, keys: pa.Array, changed: _Ints, horizon: int, task: TaskState) -> None:
        """Keeps what changed groups need from now on, and notes when the horizon ends more of it."""
        kept = table.kept(changed, horizon)
        state = task.states[VERSIONS]
        gone, new = np.flatnonzero(kept.gone), np.flatnonzero(kept.new)
        state.delete(state.entry_keys(keys.take(pa.array(table.groups[gone])), table.map_keys(gone)))
        rows = table.rows.take(pa.array(table.numbers[new]))
        state.put(state.entry_keys(keys.take(pa.array(table.groups[new])), table.map_keys(new)), rows)
        ends = np.flatnonzero(kept.ends)
        index = task.states[ENDING]
        named = at_time(keys.take(pa.array(table.groups[ends])), pa.array(table.times[ends]))
        index.put(named, pa.table({"rows": pa.nulls(len(ends))}))


@dataclass(frozen=True)
class _Clock:
    """The largest times (ms) of the table and of the stream."""

    table: int
    stream: int

    @classmethod
    def read(cls, state: State) -> _Clock:
        found = state.get(TASK_KEY).rows.to_pylist()
        return cls(**found[0]) if found else cls(_NONE, _NONE)

    @staticmethod
    def write(state: State, table: int, stream: int) -> None:
        state.put(TASK_KEY, pa.table({"table": [table], "stream": [stream]}))


@dataclass(frozen=True)
class _Ended:
    """When which groups had a version that ended another, or was a deletion, and is history now (ms)."""

    groups: pa.Array
    times: _Ints

    @classmethod
    def read(cls, horizon: int, state: State) -> _Ended:
        """Those up to the horizon (ms), which are taken out."""
        if horizon < FIRST_MS:
            return cls(pa.array([], pa.string()), np.array([], np.int64))
        _, keys, _ = state.access.scan(*before_time(min(horizon + 1, LAST_MS)))
        state.delete(keys)
        return cls(without_time(keys).cast(pa.string()), int64s(times_of(keys)))


def _judged_at(stream_times: _Ints, due: _Ints, arrived: _Ints) -> _Ints:
    """The epoch's row at which each row is judged: when it is due, but not before it came; their number if not yet."""
    found: _Ints = np.maximum(np.searchsorted(stream_times, due), arrived)
    return found


def _known(times: pa.Array) -> tuple[_Ints, _Bools]:
    """Times (ms), and which of them are such as rows can be kept by."""
    given = int64s(pc.fill_null(times, _NONE))
    known = (given >= FIRST_MS) & (given <= LAST_MS)
    return np.where(known, given, _NONE), known


def _running(times: _Ints, before: int) -> _Ints:
    """The largest time at each row."""
    found: _Ints = np.maximum(np.maximum.accumulate(times), before)
    return found


def _ints(column: pa.ChunkedArray) -> _Ints:
    return int64s(column.combine_chunks())
