"""The row that a table has for each key while its upserts go by: what was kept, then each upsert in turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.processors.states import Found, State
from kohort.spark.program.operations import SIDE

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


def last_marked(groups: _Ints, marks: _Bools, *, own: bool = True) -> _Ints:
    """For each row the last one of its group so far that is marked, -1 for none. `own`: whether it counts itself."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    begins = np.repeat(starts, np.diff(starts, append=len(order)))
    places = np.maximum.accumulate(np.where(marks[order], np.arange(len(order)), -1)) if len(order) else order
    if not own:
        places = np.concatenate([[-1], places])[:-1]
    found = np.empty(len(order), np.int64)
    found[order] = np.where(places >= begins, order[places], -1)
    return found


def last_of_groups(groups: _Ints, numbers: _Ints) -> _Ints:
    """Those of some rows that are the last of their groups among them."""
    reverse = numbers[::-1]
    return reverse[np.unique(groups[reverse], return_index=True)[1]]


def flags(column: pa.ChunkedArray) -> _Bools:
    """A column of booleans; null is false."""
    found: _Bools = pc.fill_null(column, False).combine_chunks().to_numpy(zero_copy_only=False)
    return found


def side_numbers(rows: pa.Table) -> npt.NDArray[np.int32]:
    """Which side of a join each row is of."""
    found: npt.NDArray[np.int32] = rows[SIDE].combine_chunks().to_numpy(zero_copy_only=False)
    return found


def valid(rows: pa.Table, names: tuple[str, ...]) -> _Bools:
    """Which rows have a value in all of these columns."""
    there = np.ones(rows.num_rows, bool)
    for name in names:
        there &= rows[name].combine_chunks().is_valid().to_numpy(zero_copy_only=False)
    return there


@dataclass(frozen=True)
class TableRows:
    """A table's rows, kept ones first, then all rows of an epoch, of which some are its upserts.

    Attributes:
        pool: their columns.
        before, after: for each row of the epoch the number in `pool` of what the table has for its key before it, and
            with it; -1 for nothing.
    """

    pool: pa.Table
    before: _Ints
    after: _Ints

    @classmethod
    def upserted(
        cls, state: State, keys: pa.Array, groups: _Ints, rows: pa.Table, upserts: _Bools, deleted: _Bools
    ) -> TableRows:
        """The rows that a state has, and those of an epoch, of which it keeps the last upsert of each key.

        Args:
            keys: of the groups.
            groups: of the rows, as numbers of `keys`.
            upserts: which rows are the table's.
            deleted: which of them say that there is no row any more.
        """
        found = cls.following(state.get(keys), groups, rows, upserts, deleted)
        last = last_of_groups(groups, np.flatnonzero(upserts))
        gone, left = last[deleted[last]], last[~deleted[last]]
        state.delete(keys.take(pa.array(groups[gone])))
        state.put(keys.take(pa.array(groups[left])), rows.take(pa.array(left)))
        return found

    @classmethod
    def following(cls, kept: Found, groups: _Ints, rows: pa.Table, upserts: _Bools, deleted: _Bools) -> TableRows:
        """The same, where what the state has was read already; nothing is kept."""
        count = kept.rows.num_rows
        pool = pa.concat_tables([kept.rows, rows.select(kept.rows.column_names).cast(kept.rows.schema)])
        of = np.concatenate([kept.groups, groups])
        marks = np.concatenate([np.ones(count, bool), upserts])
        gone = np.concatenate([np.zeros(count, bool), deleted])
        before, after = (last_marked(of, marks, own=own)[count:] for own in (False, True))
        for found in (before, after):
            found[gone[found] & (found >= 0)] = -1
        return cls(pool.combine_chunks(), before, after)

    def take(self, numbers: _Ints) -> pa.Table:
        """Rows by their numbers in `pool`; nulls for -1."""
        return self.pool.take(pa.array(numbers, mask=numbers < 0))
