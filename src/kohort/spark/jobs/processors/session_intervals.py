"""Which intervals of time touch, and so are one session: over all groups of a task at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


class Intervals(NamedTuple):
    """Rows or sessions: the number of each one's group; its first row's time, its last one's; when the gap is over."""

    codes: _Ints
    starts: _Ints
    lasts: _Ints
    untils: _Ints

    def taken(self, which: _Bools) -> Intervals:
        """Some of them."""
        return Intervals(*(each[which] for each in self))

    @classmethod
    def joined(cls, one: Intervals, other: Intervals) -> Intervals:
        """Those of both."""
        return cls(*map(np.concatenate, zip(one, other, strict=True)))


class Limits(NamedTuple):
    """How long (ms) after its gap a session takes rows, and is there to be joined with; None: always."""

    grace_ms: int | None
    kept_ms: int | None


class FoundSessions(NamedTuple):
    """The sessions that rows make.

    Attributes:
        of_rows: which session each row is in; -1 for none, since it was late.
        of_kept: which one each session of earlier epochs is part of now; -1 for none that has new rows.
    """

    sessions: Intervals
    of_rows: _Ints
    of_kept: _Ints


def sessions_of(rows: Intervals, stream_times: _Ints, kept: Intervals, limits: Limits) -> FoundSessions:
    """The sessions of rows, in the order in which they came, with those of earlier epochs.

    A row is late if the session that it would make was over, with the grace, at its stream time. Sessions that aren't
    kept any more at that time aren't joined with it.
    """
    every = Intervals.joined(rows, kept)
    count = len(rows.codes)
    order, components = _components(every)
    number = int(components[-1]) + 1 if len(components) else 0
    component_of = np.empty(len(order), np.int64)
    component_of[order] = components
    has_rows = np.zeros(number, np.bool_)
    has_rows[component_of[:count]] = True
    by_order = np.zeros(number, np.bool_)
    by_order[component_of[:count][_may_be_late(rows, stream_times, limits)]] = True

    starts, lasts, untils = (np.empty(number, np.int64) for _ in range(3))
    codes = np.empty(number, np.int64)
    begins = np.flatnonzero(np.diff(components, prepend=-1))
    if number:
        codes, starts = every.codes[order][begins], every.starts[order][begins]
        lasts = np.maximum.reduceat(every.lasts[order], begins)
        untils = np.maximum.reduceat(every.untils[order], begins)
    plain = has_rows & ~by_order
    numbers = np.full(number, -1, np.int64)
    numbers[plain] = np.arange(plain.sum())
    whole = Intervals(codes, starts, lasts, untils).taken(plain)
    of_rows, of_kept = np.split(numbers[component_of], [count])
    ends = np.append(begins[1:], len(order))
    more: list[_Session] = []
    for component in np.flatnonzero(by_order).tolist():
        members = np.sort(order[begins[component] : ends[component]])
        some = _one_by_one(members, every, count, stream_times, limits)
        for session in some:
            place = len(whole.codes) + len(more)
            of_rows[session.rows] = place
            of_kept[np.array(session.kept, np.int64) - count] = place
            more.append(session)
    if more:
        columns = np.array([session.interval for session in more], np.int64).T
        whole = Intervals.joined(whole, Intervals(*columns))
    return FoundSessions(whole, of_rows, of_kept)


def _components(every: Intervals) -> tuple[_Ints, _Ints]:
    """Intervals in the order of their groups and starts, and the number of each one's component there."""
    order = np.lexsort([every.starts, every.codes])
    codes, starts = every.codes[order], every.starts[order]
    # Ends as their ranks, so that a group and an end fit into one number, whose running maximum is the group's own.
    distinct, ranks = np.unique(every.untils[order], return_inverse=True)
    base = len(distinct) + 1
    reached = np.maximum.accumulate(codes * base + ranks) if len(codes) else codes
    begins = np.ones(len(codes), np.bool_)
    if len(codes):
        begins[1:] = (codes[1:] != codes[:-1]) | (starts[1:] > distinct[reached[:-1] % base])
    return order, np.cumsum(begins) - 1


def _may_be_late(rows: Intervals, stream_times: _Ints, limits: Limits) -> _Bools:
    """The rows that may be late, or be near a session that isn't kept any more when they come.

    What a row touches is over at its own time or later. So it is kept for the others.
    """
    if limits.grace_ms is None:
        return np.zeros(len(rows.codes), np.bool_)
    sure = rows.untils + limits.grace_ms
    if limits.kept_ms is not None:
        sure = np.minimum(sure, rows.starts + limits.kept_ms)
    may: _Bools = sure < stream_times
    return may


class _Session:
    """A session while it is found row by row: numbers of its rows, and of the sessions that it began with."""

    def __init__(self, interval: tuple[int, int, int, int], rows: list[int], kept: list[int]) -> None:
        self.interval, self.rows, self.kept = interval, rows, kept


def _one_by_one(members: _Ints, every: Intervals, count: int, stream_times: _Ints, limits: Limits) -> list[_Session]:
    """The sessions with rows of one component, as they come about row by row."""
    chosen = zip(members.tolist(), *(each[members].tolist() for each in every), strict=True)
    found: list[_Session] = []
    pending: list[tuple[int, tuple[int, int, int, int]]] = []
    for number, *interval in chosen:
        code, start, last, until = interval
        if number >= count:
            found.append(_Session((code, start, last, until), [], [number]))
        else:
            pending.append((number, (code, start, last, until)))
    for number, (code, start, last, until) in pending:
        now = int(stream_times[number])
        kept_ms = limits.kept_ms
        touched = [
            each
            for each in found
            if each.interval[1] <= until
            and each.interval[3] >= start
            and (kept_ms is None or each.interval[3] + kept_ms >= now)
        ]
        over = max([until, *(each.interval[3] for each in touched)])
        if limits.grace_ms is not None and over + limits.grace_ms < now:
            continue
        first = min([start, *(each.interval[1] for each in touched)])
        latest = max([last, *(each.interval[2] for each in touched)])
        # The largest takes in the others: a session's rows aren't copied each time that another comes.
        whole = max(touched, key=lambda each: len(each.rows), default=_Session((code, start, last, until), [], []))
        for each in touched:
            if each is not whole:
                whole.rows += each.rows
                whole.kept += each.kept
        whole.interval = (code, first, latest, over)
        whole.rows.append(number)
        found = [*(each for each in found if each not in touched and each is not whole), whole]
    return [each for each in found if each.rows]
