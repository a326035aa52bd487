"""The versions of a table's rows: which one of a key was valid at a time, of those that had come by then."""

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
        cls, state: State, keys: pa.Array, rows: pa.Table, groups: _Ints, times: _Ints, arrivals: _Ints
    ) -> Versions:
        """Those that a store has of all groups, and new ones.

        Args:
            keys: of the groups.
            rows, groups, times, arrivals: of the new ones.
        """
        kept = state.entries(keys)
        pool = pa.concat_tables([kept.rows, rows.select(kept.rows.column_names).cast(kept.rows.schema)])
        count = len(keys)
        of = np.concatenate([np.arange(count), kept.groups, groups])
        since = np.concatenate(
            [np.full(count, np.iinfo(np.int64).min), kept.rows[SINCE].to_numpy().astype(np.int64), times]
        )
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

    def times_table(self) -> pa.Table:
        """The columns of the keys of a store's entries."""
        return pa.table({SINCE: self.times})

    def _upto(self, groups: _Ints, times: _Ints) -> _Ints:
        """The last place of each group whose time isn't later."""
        ranks = np.unique(np.concatenate([self.times, times]))
        base = np.int64(len(ranks))
        places = self.groups * base + np.searchsorted(ranks, self.times)
        found: _Ints = np.searchsorted(places, groups * base + np.searchsorted(ranks, times), "right") - 1
        return found


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
