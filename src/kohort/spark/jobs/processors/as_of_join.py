"""Joins a stream to a table as of each row's event time: with the version of its key that was valid then.

Both sides are rows of one topic. A table's upsert is a version from its time on, until the next one's, whichever comes
first; of equal times the later arrival counts. A row meets all versions that came up to the end of its epoch. Those are
kept that are valid at, or after, the table's largest time less the history; for rows that are older there are none.
With a grace rows wait until the stream's largest time has passed them by that, so that versions may come late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kohort.spark.jobs.arrow_key_encoding import group_keys
from kohort.spark.jobs.drop_reasons import NO_KEY, NO_WINDOW
from kohort.spark.jobs.processors.interface import Made, Rows, TaskState
from kohort.spark.jobs.processors.ordering import group_numbers
from kohort.spark.jobs.processors.states import State, at_time, before_time, joined_keys
from kohort.spark.jobs.processors.table_rows import flags, valid
from kohort.spark.jobs.time_bounds import FIRST_MS, LAST_MS
from kohort.spark.program.internal_columns import DELETED
from kohort.spark.program.operations import CLOCK, SIDE, TIME_COLUMN
from kohort.spark.program.table_operations import PENDING, SINCE, VERSIONS, AsOfJoin

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]
_NONE: Final = FIRST_MS - LAST_MS
"""A time (ms) before all."""
_KEY: Final = pa.array(["{}"])


class _Asking(NamedTuple):
    """Rows of the stream that are joined now: their columns, groups' keys, times, and whether they are too old.

    `arrived`: which of the new rows each is; -1 for those that waited.
    """

    rows: pa.Table
    keys: pa.Array
    times: _Ints
    late: _Bools
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
        keyed = valid(rows.columns, self.join.on)
        upserts = rows.columns[SIDE].combine_chunks().to_numpy(zero_copy_only=False) == 1
        times, timed = _known(rows.times)
        clock = task.states[CLOCK]
        found = clock.get(_KEY).rows.to_pylist()
        before = found[0] if found else {"table": _NONE, "stream": _NONE}
        table_times = _running(np.where(upserts & keyed & timed, times, _NONE), before["table"])
        stream_times = _running(np.where(~upserts & timed, times, _NONE), before["stream"])
        horizons = table_times - self.join.history_ms
        versions = upserts & keyed & timed & (times >= horizons)
        now = int(stream_times[-1])

        old = timed & (times < horizons)
        due = ~upserts & (~keyed | ~timed | (times + self.join.grace_ms <= now))
        asking = self._asking(rows, times, old, due, before["table"] - self.join.history_ms, now, task)
        groups, keys = group_numbers(pa.concat_arrays([rows.keys, asking.keys]))
        groups_of_rows, groups_of_asking = groups[: len(times)], groups[len(times) :]
        table = _Versions.read(task.states[VERSIONS], keys, groups_of_rows, rows.columns, times, versions)
        askable = valid(asking.rows, self.join.on) & ~asking.late & (asking.times > _NONE)
        which = np.where(askable, table.valid_at(groups_of_asking, asking.times), -1)
        if versions.any():
            table.keep(task.states[VERSIONS], keys, np.unique(groups_of_rows[versions]), int(horizons[-1]))
        self._wait(rows, times, ~upserts & ~due, task)
        clock.put(_KEY, pa.table({"table": [int(table_times[-1])], "stream": [now]}))

        given = np.flatnonzero((which >= 0) | (self.join.how == "left"))
        left = asking.rows.take(pa.array(given))
        right = table.rows.take(pa.array(which[given], mask=which[given] < 0)).select(self.join.added)
        made = pa.Table.from_arrays([*left.columns, *right.columns], names=self.output.names)
        of, at = asking.arrived[given], asking.times[given]
        late = int((upserts & keyed & timed & ~versions).sum() + asking.late.sum())
        dropped = ((NO_KEY, int((upserts & ~keyed).sum())), (NO_WINDOW, int((upserts & keyed & ~timed).sum())))
        reached = np.where(of >= 0, stream_times[of], now)
        return Made(
            made, pa.array(of, mask=of < 0), late, pa.array(at, mask=at == _NONE), dropped,
            pa.array(reached, mask=reached == _NONE),
        )  # fmt: skip

    def _asking(
        self, rows: Rows, times: _Ints, old: _Bools, due: _Bools, horizon: int, now: int, task: TaskState
    ) -> _Asking:
        """New rows that wait for nothing, after those that have waited long enough."""
        new = np.flatnonzero(due)
        own = rows.columns.select(self.join.stream).take(pa.array(new))
        if not self.join.grace_ms or now <= _NONE:
            return _Asking(own, rows.keys.take(pa.array(new)), times[new], old[new], new)
        state = task.states[PENDING]
        _, waiting, values = state.access.scan(*before_time(min(now + 1, LAST_MS)))
        state.delete(waiting)
        kept = state.decoded(values)
        at = kept[TIME_COLUMN].to_numpy().astype(np.int64)
        keys = group_keys(self.join.on, [kept[name].combine_chunks() for name in self.join.on])
        return _Asking(
            pa.concat_tables([kept.select(self.join.stream), own.cast(kept.select(self.join.stream).schema)]),
            pa.concat_arrays([keys.cast(pa.string()), rows.keys.take(pa.array(new)).cast(pa.string())]),
            np.concatenate([at, times[new]]),
            np.concatenate([at < horizon, old[new]]),
            np.concatenate([np.full(len(at), -1, np.int64), new]),
        )

    def _wait(self, rows: Rows, times: _Ints, waits: _Bools, task: TaskState) -> None:
        """Keeps rows until they are due, by when that is."""
        numbers = pa.array(np.flatnonzero(waits))
        if not len(numbers):
            return
        places = joined_keys(rows.keys.take(numbers), group_keys(["at"], [rows.offsets.take(numbers)]))
        at = times[waits]
        keys = at_time(places, pa.array(np.clip(at + self.join.grace_ms, FIRST_MS, LAST_MS)))
        kept = rows.columns.select(self.join.stream).take(numbers).append_column(TIME_COLUMN, pa.array(at))
        task.states[PENDING].put(keys, kept)


@dataclass(frozen=True)
class _Versions:
    """Versions of a table's rows, by group and time, each pair once.

    Attributes:
        rows: as they are kept.
        groups: of each, as numbers.
        times: from when on each is valid (ms).
        new: which aren't kept yet.
    """

    rows: pa.Table
    groups: _Ints
    times: _Ints
    new: _Bools

    @classmethod
    def read(
        cls, state: State, keys: pa.Array, groups: _Ints, rows: pa.Table, times: _Ints, versions: _Bools
    ) -> _Versions:
        """Those of groups that are kept, and those of `rows` which are `versions`."""
        kept = state.entries(keys)
        numbers = np.flatnonzero(versions)
        mine = rows.append_column(SINCE, pa.array(times)).select(state.columns.names).take(pa.array(numbers))
        pool = pa.concat_tables([kept.rows, mine.cast(kept.rows.schema)])
        of = np.concatenate([kept.groups, groups[numbers]])
        since = np.concatenate([kept.rows[SINCE].to_numpy().astype(np.int64), times[numbers]])
        new = np.arange(len(of)) >= len(kept.groups)
        order = np.lexsort([since, of])  # stable: of the same time the last one came last
        of, since = of[order], since[order]
        last = np.append((np.diff(of) != 0) | (np.diff(since) != 0), True)[: len(of)]
        return cls(pool.take(pa.array(order[last])).combine_chunks(), of[last], since[last], new[order[last]])

    def valid_at(self, groups: _Ints, times: _Ints) -> _Ints:
        """The number of the version that a group has at a time; -1 where there is none."""
        found = self._last(groups, times)
        there = np.flatnonzero(found >= 0)
        found[there[flags(self.rows[DELETED])[found[there]]]] = -1
        return found

    def keep(self, state: State, keys: pa.Array, changed: _Ints, horizon: int) -> None:
        """Keeps new versions, of groups that have such; takes out those that were over before the horizon."""
        first = np.full(len(keys), -1, np.int64)
        first[changed] = self._last(changed, np.full(len(changed), horizon))
        deleted = flags(self.rows[DELETED])
        numbers = np.arange(len(self.groups))
        at_horizon = first[self.groups]
        over = (numbers < at_horizon) | ((numbers == at_horizon) & deleted)
        entries = state.entry_keys(keys.take(pa.array(self.groups)), self.rows)
        state.delete(entries.filter(pa.array(over)))
        put = pa.array(self.new & ~over)
        state.put(entries.filter(put), self.rows.filter(put))

    def _last(self, groups: _Ints, times: _Ints) -> _Ints:
        """The last version of a group up to a time, deleted or not."""
        ranks = np.unique(np.concatenate([self.times, times]))
        base = np.int64(len(ranks) + 1)
        places = self.groups * base + np.searchsorted(ranks, self.times)
        found = np.searchsorted(places, groups * base + np.searchsorted(ranks, times), "right") - 1
        found[(found < 0) | (self.groups[found] != groups) if len(self.groups) else np.ones(len(found), bool)] = -1
        return found.astype(np.int64)


def _known(times: pa.Array) -> tuple[_Ints, _Bools]:
    """Times (ms), and which of them are such as rows can be kept by."""
    given = times.fill_null(_NONE).to_numpy(zero_copy_only=False).astype(np.int64)
    known = (given >= FIRST_MS) & (given <= LAST_MS)
    return np.where(known, given, _NONE), known


def _running(times: _Ints, before: int) -> _Ints:
    return np.maximum(np.maximum.accumulate(times), before)
