"""State that is forgotten a while after it was written: what is expired isn't read, and is taken out bit by bit.

Each row that is kept has the time of its last write. Beside the store there is an index: for each entry a key that
begins with a time at which, or after which, it was written. Entries whose time in the index is long enough ago are
looked up: those that were written again since get another place in the index, the others are deleted. So a write costs
no more than a look whether the entry is new, and each entry is come by once in its time to live.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.processors.states import Found, State, at_time, before_time, without_time
from kohort.spark.jobs.time_bounds import FIRST_MS
from kohort.spark.program.operations import WRITTEN

_LEAST_BYTES: Final = 4 * 1024 * 1024
_BYTES_AN_ENTRY: Final = 512
"""How much of the index is gone through in an epoch: so much, or so much for each of its groups or rows, if that is
more. Keys have some 100 bytes, so more is taken out than such an epoch usually adds."""


@dataclass(frozen=True)
class ExpiringState:
    """A state with a time to live. It is used as a `State`, whose columns are those without the time of the write.

    Attributes:
        state: it has the column `WRITTEN`, too, in ms.
        index: a store of keys with times before them.
        ttl_ms: how long after its last write an entry is kept; a list's rows each for themselves.
        now: the time, in ms; None before there is any.
    """

    state: State
    index: State
    ttl_ms: int
    now: int | None

    @property
    def columns(self) -> pa.Schema:
        """As they are given and taken."""
        return pa.schema([each for each in self.state.columns if each.name != WRITTEN])

    @property
    def map_key(self) -> pa.Schema:
        """Of a map, the columns of its keys."""
        return self.state.map_key

    def get(self, keys: pa.Array) -> Found:
        """The values of those keys that have one."""
        return self._alive(self.state.get(keys))

    def put(self, keys: pa.Array, rows: pa.Table) -> None:
        """New values of keys."""
        self.state.put(keys, self._stamped(rows))
        found = self.state.get(keys)
        # One that has expired is in the index, too, but is about to be taken out of it, or has been.
        indexed = pc.fill_null(pc.greater(found.rows[WRITTEN].combine_chunks(), self._oldest), False)
        known = np.zeros(len(keys), np.bool_)
        known[found.groups[indexed.to_numpy(zero_copy_only=False)]] = True
        self._note(keys.filter(pa.array(~known)))

    def delete(self, keys: pa.Array) -> None:
        """Takes keys out; the index follows when their time has come."""
        self.state.delete(keys)

    def entry_keys(self, groups: pa.Array, map_keys: pa.Table) -> pa.Array:
        """As of a `State`."""
        return self.state.entry_keys(groups, map_keys)

    def entries(self, groups: pa.Array) -> Found:
        """All entries of groups."""
        return self._alive(self.state.entries(groups))

    def append(self, groups: pa.Array, rows: pa.Table, places: pa.Array, piece: int = 0) -> None:
        """Adds rows to lists."""
        self._note(self.state.append(groups, self._stamped(rows), places, piece))

    def lists(self, groups: pa.Array) -> Found:
        """All rows of the lists of groups, in the order in which they were added."""
        return self._alive(self.state.lists(groups))

    def clear(self, groups: pa.Array) -> None:
        """Takes out all that groups have."""
        self.state.clear(groups)

    def expire(self, entries: int, *, lists: bool) -> None:
        """Takes out what has expired, or some of it if that is much: before anything else is written.

        Args:
            entries: how many this call may write, about: one for each of its groups, or of its rows if these are more.
            lists: whether the state is of lists, whose pieces are written once.
        """
        if self.now is None:
            return
        most = max(_LEAST_BYTES, _BYTES_AN_ENTRY * entries)
        _, indexed, _ = self.index.access.scan(*before_time(self._oldest + 1), most)
        if not len(indexed):
            return
        self.index.delete(indexed)
        keys = without_time(indexed)
        if lists:
            self.state.delete(keys)
            return
        found = self.state.get(keys)
        written = pc.fill_null(found.rows[WRITTEN].combine_chunks(), self.now)
        there = keys.take(pa.array(found.groups))
        expired = pc.less_equal(written, self._oldest)
        self.state.delete(there.filter(expired))
        again = pc.invert(expired)
        self._write_index(there.filter(again), written.filter(again))

    @property
    def _oldest(self) -> int:
        """What was written then, or before, has expired."""
        return self._written_at - self.ttl_ms

    @property
    def _written_at(self) -> int:
        return FIRST_MS if self.now is None else self.now

    def _alive(self, found: Found) -> Found:
        # What was written when the state had no time to live stays until it is written again.
        alive = pc.fill_null(pc.greater(found.rows[WRITTEN].combine_chunks(), self._oldest), True)
        numbers = found.groups[alive.to_numpy(zero_copy_only=False)]
        return Found(numbers, found.rows.filter(alive).drop_columns([WRITTEN]))

    def _stamped(self, rows: pa.Table) -> pa.Table:
        return rows.append_column(WRITTEN, pa.repeat(pa.scalar(self._written_at, pa.int64()), rows.num_rows))

    def _note(self, keys: pa.Array) -> None:
        self._write_index(keys, pa.repeat(pa.scalar(self._written_at, pa.int64()), len(keys)))

    def _write_index(self, keys: pa.Array, times: pa.Array) -> None:
        if len(keys):
            self.index.access.write(at_time(keys, times), pa.repeat(pa.scalar(b"{}"), len(keys)))
