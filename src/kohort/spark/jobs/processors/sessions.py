"""Says which session each row is in: rows of a group are in one as long as their times are no further than a gap apart.

Rows, and sessions of earlier epochs, are intervals of time: from a row's time to when its gap is over. Those that touch
are one session. That is found for all at once, but where it matters in which order rows came, since a row is late or a
session was closed: there it goes row by row.

`SESSIONS` has when each session began and ended, by group and when its gap is over, so that those near a row lie
together. `DUE` has an entry of each, by a time at which it is looked at. That isn't moved as a session grows: when it
has come, the session is looked at, and if it isn't over, gets another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.arrow_key_encoding import group_keys
from kohort.spark.jobs.drop_reasons import NO_WINDOW
from kohort.spark.jobs.processors.interface import Made, Rows, TaskState
from kohort.spark.jobs.processors.ordering import group_numbers, int64s
from kohort.spark.jobs.processors.session_intervals import FoundSessions, Intervals, Limits, sessions_of
from kohort.spark.jobs.processors.states import State, at_time, before_time, joined_keys
from kohort.spark.jobs.processors.times import timestamps
from kohort.spark.jobs.time_bounds import FIRST_MS, LAST_MS
from kohort.spark.program.internal_columns import CHANGE, SESSION
from kohort.spark.program.operations import DUE, SESSIONS, Change, Sessions

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


class _Due(NamedTuple):
    """Entries of `DUE` whose time has come.

    Attributes:
        entries: the group's columns, `start`, `at`, and `closed`: whether the session was closed before, and is to be
            forgotten.
        groups: the keys of their groups.
    """

    keys: pa.Array
    entries: pa.Table
    groups: pa.Array

    def numbers(self, name: str) -> _Ints:
        return int64s(self.entries[name].combine_chunks())


class _Groups(NamedTuple):
    """The groups of rows and of entries that are due, by number: their keys, and their columns."""

    keys: pa.Array
    columns: pa.Table


@dataclass(frozen=True)
class SessionsProcessor:
    """The sessions of rows.

    Attributes:
        group: the columns that state is kept by.
        output: the columns of the rows, then `SESSION`, `ABSORBED` and `CHANGE`.
    """

    sessions: Sessions
    group: tuple[str, ...]
    output: pa.Schema

    def process(self, rows: Rows, task: TaskState) -> Made:
        times, untils, possible = self._intervals(rows)
        numbers = np.flatnonzero(possible)
        taken = pa.array(numbers)
        due = self._due(task)
        codes, keys = group_numbers(pa.concat_arrays([rows.keys.take(taken).cast(pa.string()), due.groups]))
        _, first = np.unique(codes, return_index=True)
        columns = pa.concat_tables([_bare(rows.columns.select(self.group).take(taken)), due.entries.select(self.group)])
        groups = _Groups(keys, columns.take(pa.array(first)))

        new = Intervals(codes[: len(numbers)], times[numbers], times[numbers], untils[numbers])
        kept = _kept(task.states[SESSIONS], groups, codes, np.concatenate([new.starts, due.numbers("at")]))
        stream_times = int64s(pc.fill_null(rows.stream_times.take(taken), FIRST_MS))
        found = sessions_of(new, stream_times, kept, Limits(self.sessions.window.grace_ms, self.sessions.kept_ms))

        over = self._is_over(found.sessions, task.stream_time)
        ending = (found.of_kept < 0) & self._is_over(kept, task.stream_time)
        _write_sessions(task.states[SESSIONS], groups, found.sessions, over, kept, (found.of_kept >= 0) | ending)
        forgotten = self._write_due(task, groups, due, codes[len(numbers) :], found, over, kept, ending)

        changes = np.where(over & self.sessions.closes, Change.FINAL, Change.GROWN)
        in_time = np.flatnonzero(found.of_rows >= 0)
        given = self._given(rows, numbers[in_time], found.of_rows[in_time], found, changes, kept)
        end = Change.CLOSED if self.sessions.closes else Change.FORGOTTEN
        extra = [self._extra(groups, kept.taken(ending), end), self._extra(groups, forgotten, Change.FORGOTTEN)]
        count = sum(each.num_rows for each in extra)
        of = pa.concat_arrays([pa.array(numbers[in_time]), pa.nulls(count, pa.int64())])
        dropped = ((NO_WINDOW, len(possible) - len(numbers)),)
        return Made(pa.concat_tables([given, *extra]), of, len(numbers) - len(in_time), dropped=dropped)

    def _intervals(self, rows: Rows) -> tuple[_Ints, _Ints, _Bools]:
        """The time of each row, until when another may come to be in its session (ms), and which have both."""
        window = self.sessions.window
        possible = pc.and_(pc.greater_equal(rows.times, FIRST_MS), pc.less_equal(rows.times, LAST_MS))
        if window.gap_column is None:
            gaps = pa.array(np.full(len(rows.times), window.gap_ms))
        else:
            gaps = rows.columns[window.gap_column].combine_chunks()
            possible = pc.and_(possible, pc.greater(gaps, 0))
        there: _Bools = pc.fill_null(possible, False).to_numpy(zero_copy_only=False)
        times = int64s(pc.fill_null(rows.times, 0))
        most = LAST_MS - np.clip(times, FIRST_MS, LAST_MS)
        return times, times + np.minimum(int64s(pc.fill_null(gaps, 0)), most), there

    def _is_over(self, sessions: Intervals, stream_time: int | None) -> _Bools:
        """Which sessions nothing can be in any more."""
        kept_ms = self.sessions.kept_ms
        if kept_ms is None or stream_time is None:
            return np.zeros(len(sessions.untils), np.bool_)
        over: _Bools = sessions.untils + kept_ms < stream_time
        return over

    # What is due -----------------------------------------------------------------------------------------------------

    def _due(self, task: TaskState) -> _Due:
        state, kept_ms = task.states[DUE], self.sessions.kept_ms
        upto = FIRST_MS if kept_ms is None or task.stream_time is None else min(task.stream_time - kept_ms, LAST_MS)
        _, keys, values = state.access.scan(*before_time(upto))
        entries = state.decoded(values)
        groups = group_keys(self.group, [entries[name].combine_chunks() for name in self.group])
        return _Due(keys, entries, groups.cast(pa.string()))

    def _write_due(
        self,
        task: TaskState,
        groups: _Groups,
        due: _Due,
        codes: _Ints,
        found: FoundSessions,
        over: _Bools,
        kept: Intervals,
        ending: _Bools,
    ) -> Intervals:
        """Takes out entries whose time has come, and adds those of sessions that have none; the sessions to forget."""
        state, window, kept_ms = task.states[DUE], self.sessions.window, self.sessions.kept_ms
        sessions = found.sessions
        if kept_ms is None:
            return sessions.taken(np.zeros(len(over), np.bool_))
        closed = due.entries["closed"].combine_chunks().to_numpy(zero_copy_only=False).astype(bool)
        starts = due.numbers("start")
        ids = _pairs(
            np.concatenate([codes, sessions.codes, kept.codes]), np.concatenate([starts, sessions.starts, kept.starts])
        )
        of_due, of_sessions, of_kept_ones = np.split(ids, np.cumsum([len(codes), len(over)]))
        has_entry = np.setdiff1d(of_kept_ones, of_due[~closed])  # from an earlier epoch
        waits = ~over & ~np.isin(of_sessions, has_entry)
        waits_on = (found.of_kept < 0) & ~ending & np.isin(of_kept_ones, of_due[~closed])
        retention_ms = window.retention_ms
        forgets = Intervals.joined(sessions.taken(over), kept.taken(ending & self.sessions.closes))
        if retention_ms is None:
            forgets = forgets.taken(np.zeros(len(forgets.codes), np.bool_))
        later = np.maximum(forgets.untils + (retention_ms or 0) - kept_ms, (task.stream_time or 0) - kept_ms)
        state.delete(due.keys)
        open_ = Intervals.joined(sessions.taken(waits), kept.taken(waits_on))
        entries = Intervals.joined(open_, forgets)
        at = np.clip(np.concatenate([open_.untils, later]), FIRST_MS, LAST_MS)
        is_closed = np.arange(len(at)) >= len(open_.codes)
        named = joined_keys(
            groups.keys.take(pa.array(entries.codes)), group_keys(["start"], [pa.array(entries.starts)])
        )
        columns = groups.columns.take(pa.array(entries.codes))
        own = {"start": entries.starts, "at": at, "closed": is_closed}
        for name, values in own.items():
            columns = columns.append_column(name, pa.array(values))
        state.put(at_time(named, pa.array(at)), columns)
        gone = closed & ~np.isin(of_due, np.concatenate([of_sessions, of_kept_ones]))
        return Intervals(codes, starts, starts, starts).taken(gone)

    # What is given ---------------------------------------------------------------------------------------------------

    def _given(
        self,
        rows: Rows,
        numbers: _Ints,
        sessions: _Ints,
        found: FoundSessions,
        changes: _Ints,
        kept: Intervals,
    ) -> pa.Table:
        """The rows that are in a session, by their numbers and those of their sessions."""
        of_kept, starts = found.of_kept, found.sessions.starts
        merged = np.flatnonzero(of_kept >= 0)
        merged = merged[np.argsort(of_kept[merged], kind="stable")]
        ends = np.searchsorted(of_kept[merged], np.arange(len(starts) + 1))
        lists = pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), pa.array(kept.starts[merged]))
        is_first = np.zeros(len(sessions), np.bool_)
        is_first[np.unique(sessions, return_index=True)[1]] = True
        absorbed = lists.take(pa.array(sessions, mask=~is_first))
        columns = [*rows.columns.take(pa.array(numbers)).columns, pa.array(starts[sessions]), absorbed]
        columns.append(pa.array(changes[sessions]))
        return self._as_output(pa.table(columns, names=self.output.names))

    def _extra(self, groups: _Groups, sessions: Intervals, change: Change) -> pa.Table:
        """A row for each session, which has none of the stream's."""
        count = len(sessions.codes)
        columns = groups.columns.take(pa.array(sessions.codes))
        own = {self.sessions.window.column: timestamps(pa.array(sessions.lasts)), SESSION: pa.array(sessions.starts)}
        own[CHANGE] = pa.array(np.full(count, int(change)))
        arrays = [
            columns[field.name] if field.name in self.group else own.get(field.name, pa.nulls(count, field.type))
            for field in self.output
        ]
        return self._as_output(pa.table(arrays, names=self.output.names))

    def _as_output(self, rows: pa.Table) -> pa.Table:
        return _bare(rows).cast(pa.schema([field.with_nullable(True) for field in self.output]))


def _kept(state: State, groups: _Groups, codes: _Ints, near: _Ints) -> Intervals:
    """The sessions of groups that are over at the first of some times (ms) or later."""
    first = np.full(len(groups.keys), LAST_MS)
    np.minimum.at(first, codes, np.clip(near, FIRST_MS, LAST_MS))
    found = state.entries_from(groups.keys, pa.table({"over": timestamps(pa.array(first))}))
    starts, lasts, untils = (int64s(found.rows[name].combine_chunks()) for name in ("start", "last", "until"))
    return Intervals(found.groups, starts, lasts, untils)


def _write_sessions(
    state: State, groups: _Groups, sessions: Intervals, over: _Bools, kept: Intervals, gone: _Bools
) -> None:
    """Keeps sessions but for those that are over, instead of those of earlier epochs that are gone."""
    stays = sessions.taken(~over)
    keys = _session_keys(state, groups, stays)
    before = _session_keys(state, groups, kept.taken(gone))
    state.delete(before.filter(pc.invert(pc.is_in(before, value_set=keys))))
    columns = {"start": stays.starts, "last": stays.lasts, "until": stays.untils}
    rows = pa.table({name: pa.array(values) for name, values in columns.items()})
    state.put(keys, rows.add_column(0, "over", timestamps(rows["until"].combine_chunks())))


def _session_keys(state: State, groups: _Groups, sessions: Intervals) -> pa.Array:
    over = pa.table({"over": timestamps(pa.array(sessions.untils))})
    return state.entry_keys(groups.keys.take(pa.array(sessions.codes)), over)


def _pairs(codes: _Ints, starts: _Ints) -> _Ints:
    """A number for each pair, equal for equal ones."""
    distinct, ranks = np.unique(starts, return_inverse=True)
    pairs: _Ints = codes * (len(distinct) + 1) + ranks
    return pairs


def _bare(rows: pa.Table) -> pa.Table:
    """With columns that may be null."""
    return rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema]))
