"""The versions of a table's rows: which one of a key was valid at a time, of those that had come by then.

An epoch asks for versions at some times. In the store each key's versions are in the order of their times, and only
those around these times are read: the one that was valid at the first of them, those up to the last, and the next one.
So what an epoch costs grows with what it asks for, not with the history. Where the times of a key are far apart they
are several ranges, so that what lies between isn't read either. How many versions that is isn't known before: of few
times all are apart, of many those that are far apart beside the history, or beside the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kohort.spark.jobs.processors.states import State
from kohort.spark.jobs.processors.table_rows import flags
from kohort.spark.program.internal_columns import DELETED
from kohort.spark.program.table_operations import SINCE

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]
_KEPT: Final = -1
_BEGINNING: Final = -2
"""When versions came that a store has, and when each key's beginning did, from which on it has no version."""


_PARTINGS: Final = 1_000
"""How many ranges an epoch reads at most beyond one of each key: each costs two seeks in the store."""
_FEW: Final = 100
"""How many gaps there are at most that all part, narrow ones, too."""
_SHARE: Final = 10
"""With more of them, all those that are too narrow to part are together less than this part of the history."""


class Ranges(NamedTuple):
    """Times that are asked for, from first to last (ms), of groups as numbers. A group may have several."""

    groups: _Ints
    firsts: _Ints
    lasts: _Ints

    def and_others(self, groups: _Ints, firsts: _Ints, last: int) -> Ranges:
        """With one more range of each of `groups`, some of which may be the same: from its least time on."""
        distinct, which = np.unique(groups, return_inverse=True)
        least = np.full(len(distinct), last)
        np.minimum.at(least, which, firsts)
        return Ranges(
            np.concatenate([self.groups, distinct]),
            np.concatenate([self.firsts, least]),
            np.concatenate([self.lasts, np.full(len(distinct), last)]),
        )


def ranges_of(groups: _Ints, times: _Ints, history_ms: int) -> Ranges:
    """Ranges that have times (ms) of groups: one of each, parted where those of any group are furthest apart.

    A range costs as much as reading some versions, so times that are next to each other are in one.
    """
    order = np.lexsort([times, groups])
    groups, times = groups[order], times[order]
    begins = np.diff(groups, prepend=-1) != 0
    gaps = np.where(begins, 0, np.diff(times, prepend=times[:1]))
    widest = np.argsort(-gaps, kind="stable")[:_PARTINGS]
    begins[widest[gaps[widest] > _narrow(gaps[gaps > 0], history_ms)]] = True
    starts = np.flatnonzero(begins)
    return Ranges(groups[starts], times[starts], times[np.append(starts, len(times))[1:] - 1])


def _narrow(gaps: _Ints, history_ms: int) -> int:
    """How long gaps (ms) are at most that don't part."""
    if len(gaps) <= _FEW:
        return 0
    return min(history_ms // (_SHARE * len(gaps)), 2 * int(gaps.mean()))


class KeptVersions(NamedTuple):
    """What becomes of versions.

    Attributes:
        new: which are to be put.
        gone: which are to be taken out.
        ends: which end another, or are deletions, so that there will be more to take out when they are history.
    """

    new: _Bools
    gone: _Bools
    ends: _Bools


@dataclass(frozen=True)
class Versions:
    """Versions in the order of their groups, times and arrivals. The first of each group is its beginning.

    Of those that a store has, these are the ones around the times that are asked for, some of them twice: there are no
    others between such a time, or a new version's, and the ones next to it.

    Attributes:
        rows: the versions' columns.
        groups: of each, as numbers.
        times: from when on each is valid (ms).
        arrivals: which row of the epoch each was; negative for those that were there.
        numbers: which of `rows` each is; -1 for a beginning.
    """

    rows: pa.Table
    groups: _Ints
    times: _Ints
    arrivals: _Ints
    numbers: _Ints

    @classmethod
    def read(
        cls,
        state: State,
        keys: pa.Array,
        asked: Ranges,
        rows: pa.Table,
        groups: _Ints,
        times: _Ints,
        arrivals: _Ints,
    ) -> Versions:
        """Those that a store has around the times that are asked for, and new ones, whose times are among these.

        Args:
            keys: of the groups.
            rows, groups, times, arrivals: of the new ones.
        """
        firsts, lasts = (_map_keys(each) for each in (asked.firsts, asked.lasts))
        kept = state.entries_around(keys.take(pa.array(asked.groups)), firsts, lasts)
        rows = rows.set_column(rows.column_names.index(SINCE), SINCE, _map_keys(times)[SINCE])
        pool = pa.concat_tables([kept.rows, rows.select(kept.rows.column_names).cast(kept.rows.schema)])
        count = len(keys)
        of = np.concatenate([np.arange(count), asked.groups[kept.groups], groups])
        there = kept.rows[SINCE].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_numpy()
        since = np.concatenate([np.full(count, np.iinfo(np.int64).min), there, times])
        came = np.concatenate([np.full(count, _BEGINNING), np.full(len(kept.groups), _KEPT), arrivals])
        numbers = np.concatenate([np.full(count, -1), np.arange(pool.num_rows)])
        order = np.lexsort([came, since, of])
        return cls(pool.combine_chunks(), of[order], since[order], came[order], numbers[order])

    def valid_at(self, groups: _Ints, times: _Ints, arrived: _Ints, last_only: _Bools) -> _Ints:
        """The number in `rows` of the version that each group had at a time; -1 for none.

        Args:
            arrived: which row of the epoch each asks at: what came later doesn't count.
            last_only: whether it counts only if it is the group's last one.
        """
        places = last_at_most(self.arrivals, self._upto(groups, times), arrived)
        found = self.numbers[places]
        ends = np.searchsorted(self.groups, groups, "right") - 1
        found[last_only & (places != last_at_most(self.arrivals, ends, arrived))] = -1
        there = np.flatnonzero(found >= 0)
        found[there[flags(self.rows[DELETED])[found[there]]]] = -1
        return found

    def kept(self, changed: _Ints, horizon: int) -> KeptVersions:
        """What is kept of groups from which nothing before the horizon (ms) is asked for, but the last version."""
        count = len(self.groups)
        first = np.full(count, True)
        first[1:] = (np.diff(self.groups) != 0) | (np.diff(self.times) != 0)
        last = np.append(first[1:], True)  # of several of one time
        stored = self.arrivals[np.maximum.accumulate(np.where(first, np.arange(count), 0))] == _KEPT
        version, deleted = self.numbers >= 0, np.zeros(count, bool)
        deleted[version] = flags(self.rows[DELETED])[self.numbers[version]]
        at_horizon = np.full(int(self.groups[-1]) + 1, -1)
        at_horizon[changed] = self._upto(changed, np.full(len(changed), horizon))
        bound = at_horizon[self.groups]
        over = (np.arange(count) < bound) | ((np.arange(count) == bound) & deleted)
        alive = last & version & ~over
        new = alive & (self.arrivals >= 0)

        before = np.maximum.accumulate(np.where(last, np.arange(count), 0))
        before = np.concatenate([[0], before[:-1]])  # the version that each one ends, or its group's beginning
        matters = deleted | alive[before]
        ends = alive & (self.times > horizon) & matters & (new | new[before])
        return KeptVersions(new, last & version & over & stored, ends)

    def map_keys(self, places: _Ints) -> pa.Table:
        """The columns of the keys of a store's entries, of these versions."""
        return _map_keys(self.times[places])

    def _upto(self, groups: _Ints, times: _Ints) -> _Ints:
        """The last place of each group whose time isn't later."""
        ranks = np.unique(np.concatenate([self.times, times]))
        base = np.int64(len(ranks))
        places = self.groups * base + np.searchsorted(ranks, self.times)
        found: _Ints = np.searchsorted(places, groups * base + np.searchsorted(ranks, times), "right") - 1
        return found


def _map_keys(times: _Ints) -> pa.Table:
    """Times (ms) as the map's keys have them, so that their texts are in order."""
    return pa.table({SINCE: pa.array(times, pa.timestamp("ms", "UTC"))})


def last_at_most(values: _Ints, starts: _Ints, limits: _Ints) -> _Ints:
    """For each start the last place at or before it whose value is at most the limit. There must be one.

    In steps of powers of two, so many values that are too large cost little.
    """
    found = starts.copy()
    if (values[found] <= limits).all():
        return found
    least = [values]  # of 1, 2, 4, … values up to each place
    while (width := 1 << len(least)) < 2 * len(values):
        half, whole = width // 2, least[-1].copy()
        whole[half:] = np.minimum(whole[half:], least[-1][:-half])
        least.append(whole)
    for power in range(len(least) - 1, -1, -1):
        found[least[power][found] > limits] -= 1 << power
    return found
