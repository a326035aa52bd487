"""The stores of a processor, as it reads and writes them: columns in, columns out, for many keys at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.arrow_key_encoding import group_keys, window_texts
from kohort.spark.jobs.processors.ordering import group_numbers, int64s, places_in_runs
from kohort.spark.jobs.state_encoding import list_texts, lists_of, object_texts, objects_of
from kohort.spark.jobs.time_bounds import FIRST_MS

TASK_KEY: Final = pa.array(["{}"])
"""The key of what a task keeps once, for all groups."""

_LIST_BYTES: Final = 256 * 1024
"""About how much of a list is in one value: records have a largest size."""
_FIRST_KEY: Final = b'{"window":"'
_FIRST_ONLY: Final = pa.array([_FIRST_KEY])
_TIMED: Final = len('{"window":"2013-01-01T05:00:00.000Z",')
_FIRST_PLACE: Final = 10**18
_FIRST_PIECE: Final = 10**6
"""What places in lists are counted from: all have as many digits, so that they sort as texts."""


class StoreAccess(Protocol):
    """A store of one task."""

    def lookup(self, keys: pa.Array) -> pa.Array:
        """Values of keys (binary), null where there is none."""
        ...

    def scan(
        self,
        starts: pa.Array,
        ends: pa.Array,
        most_bytes: int | None = None,
        neighbours_from: pa.Array | None = None,
        neighbours_to: pa.Array | None = None,
    ) -> tuple[pa.Array, pa.Array, pa.Array]:
        """The rows of ranges: which range, key and value of each; ranges and keys in order.

        Args:
            most_bytes: about how much of them, from the first on; None: all.
            neighbours_from: of each range, from which key on the row before it is given, too; None for none.
            neighbours_to: of each range, up to which key (not included) the row after it is given, too; None for none.
        """
        ...

    def write(self, keys: pa.Array, values: pa.Array) -> None:
        """Values of keys after the epoch; null deletes. What was written isn't read in the same epoch."""
        ...


class Found(NamedTuple):
    """Rows of a store, and which of the groups that were asked for each is of."""

    groups: npt.NDArray[np.int64]
    rows: pa.Table


@dataclass(frozen=True)
class State:
    """A store, with the columns of its values.

    Attributes:
        what: its name, for errors.
        columns: of its values; of a map, with those of its keys.
        map_key: of a map, the columns of its keys.
        bucket_ms: of a store with a retention, how long a bucket of time is; 0 for none.
    """

    what: str
    columns: pa.Schema
    access: StoreAccess
    map_key: pa.Schema = field(default_factory=lambda: pa.schema([]))
    bucket_ms: int = 0

    def decoded(self, values: pa.Array) -> pa.Table:
        """Values as they were put."""
        return objects_of(values, self.columns, self.what)

    # One object a key ------------------------------------------------------------------------------------------------

    def get(self, keys: pa.Array) -> Found:
        """The values of those keys that have one."""
        values = self.access.lookup(keys)
        there = values.is_valid()
        numbers = np.flatnonzero(there.to_numpy(zero_copy_only=False))
        return Found(numbers, self.decoded(values.filter(there)))

    def put(self, keys: pa.Array, rows: pa.Table) -> None:
        """New values of keys."""
        self.access.write(keys, object_texts(rows.select(self.columns.names)))

    def delete(self, keys: pa.Array) -> None:
        """Takes keys out."""
        self.access.write(keys, pa.nulls(len(keys), pa.binary()))

    # Maps ------------------------------------------------------------------------------------------------------------

    def entry_keys(self, groups: pa.Array, map_keys: pa.Table) -> pa.Array:
        """The keys of entries: a group's and a map key's, row by row."""
        own = group_keys(self.map_key.names, [map_keys[name].combine_chunks() for name in self.map_key.names])
        return joined_keys(groups, own)

    def entries(self, groups: pa.Array) -> Found:
        """All entries of groups, which have the columns of the map's keys among their values."""
        numbers, _, values = self.access.scan(*_beginning_with(_opened(groups)))
        return Found(int64s(numbers), self.decoded(values))

    def entries_from(self, groups: pa.Array, map_keys: pa.Table) -> Found:
        """The entries of groups whose map keys are, as texts, these or greater ones."""
        _, after = _beginning_with(_opened(groups))
        numbers, _, values = self.access.scan(self.entry_keys(groups, map_keys).cast(pa.binary()), after)
        return Found(int64s(numbers), self.decoded(values))

    def entries_around(self, groups: pa.Array, firsts: pa.Table, lasts: pa.Table) -> Found:
        """The entries of groups between two map keys, these included, and the ones next to them.

        In time that grows with these alone: each range costs two seeks in the store, however many entries a group has.

        Args:
            firsts, lasts: by the bytes of their texts, so numbers aren't in order, and times are.
        """
        before, after = _beginning_with(_opened(groups))
        starts, ends = (self.entry_keys(groups, each).cast(pa.binary()) for each in (firsts, lasts))
        ends = pc.binary_join_element_wise(ends, b"\0", b"")
        numbers, _, values = self.access.scan(starts, ends, None, before, after)
        return Found(int64s(numbers), self.decoded(values))

    # Lists -----------------------------------------------------------------------------------------------------------

    def append(self, groups: pa.Array, rows: pa.Table, places: pa.Array, piece: int = 0) -> pa.Array:
        """Adds rows to lists, each to that of its group; returns the keys of the pieces that this writes.

        Args:
            places: where each belongs: numbers that go up from epoch to epoch, such as offsets.
            piece: counts on from there within a place, where several epochs have the same.
        """
        if not rows.num_rows:
            return pa.array([], pa.string())
        codes, distinct = group_numbers(groups)
        order = np.argsort(codes, kind="stable")
        codes = codes[order]
        # A piece for each group, or several where that would be too large for a record.
        most = max(1, int(_LIST_BYTES * rows.num_rows / max(rows.nbytes, 1)))
        within = places_in_runs(codes)
        starts = np.flatnonzero(within % most == 0)
        at = _FIRST_PLACE + places.to_numpy(zero_copy_only=False)[order[starts]].astype(np.int64)
        entries = group_keys(["at", "piece"], [pa.array(at), pa.array(_FIRST_PIECE + piece + within[starts] // most)])
        keys = joined_keys(distinct.take(pa.array(codes[starts])), entries)
        taken = rows.select(self.columns.names).take(pa.array(order))
        self.access.write(keys, list_texts(taken, np.append(starts[1:], len(codes))))
        return keys

    def lists(self, groups: pa.Array) -> Found:
        """All rows of the lists of groups, in the order in which they were added."""
        numbers, _, values = self.access.scan(*_beginning_with(_opened(groups)))
        lists, rows = lists_of(values, self.columns, self.what)
        return Found(int64s(numbers)[lists], rows)

    def clear(self, groups: pa.Array) -> None:
        """Takes out all that groups have."""
        _, keys, _ = self.access.scan(*_beginning_with(_opened(groups)))
        self.delete(keys)

    # Buckets of time -------------------------------------------------------------------------------------------------

    def bucketed(self, groups: pa.Array, times: pa.Array) -> pa.Array:
        """Groups with the bucket that a time (ms) is in before them: keys that are forgotten after their retention."""
        numbers = int64s(times)
        return at_time(groups, pa.array(numbers - numbers % self.bucket_ms))


def at_time(groups: pa.Array, times: pa.Array) -> pa.Array:
    """Groups with a time (ms) before them, as keys of windows have it."""
    start = pc.binary_join_element_wise('{"window":"', window_texts(times), '"}', "")
    return joined_keys(start, groups)


def without_time(keys: pa.Array) -> pa.Array:
    """Keys as they were before `at_time`."""
    return pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(keys.cast(pa.string()), _TIMED), "")


def times_of(keys: pa.Array) -> pa.Array:
    """The times (ms) that `at_time` gave keys."""
    texts = pc.utf8_slice_codeunits(keys.cast(pa.string()), len('{"window":"'), _TIMED - len('",'))
    return texts.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())


def before_time(time: int, start: int | None = None) -> tuple[pa.Array, pa.Array]:
    """The range of keys with a time before this one, which isn't in it, and from `start` on (ms)."""
    first = _FIRST_KEY if start is None or start < FIRST_MS else _key_start(start)
    return pa.array([first]), _FIRST_ONLY if time <= FIRST_MS else pa.array([_key_start(time)])


def _key_start(time: int) -> bytes:
    """What keys with this time begin with, up to the time's end."""
    key: str = at_time(pa.array(["{}"]), pa.array([time]))[0].as_py()
    return key[: -len(",}")].encode()


def joined_keys(before: pa.Array, after: pa.Array) -> pa.Array:
    """The fields of two JSON objects in one, row by row."""
    before, after = before.cast(pa.string()), after.cast(pa.string())
    return pc.binary_join_element_wise(_opened(before), pc.utf8_slice_codeunits(after, 1), "")


def _opened(keys: pa.Array) -> pa.Array:
    """JSON objects up to where another field may follow."""
    return pc.binary_join_element_wise(pc.utf8_slice_codeunits(keys.cast(pa.string()), 0, -1), ",", "")


def _beginning_with(prefixes: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The ranges of keys that begin with texts that end with a comma."""
    after = pc.binary_join_element_wise(pc.utf8_slice_codeunits(prefixes, 0, -1), chr(ord(",") + 1), "")
    return prefixes.cast(pa.binary()), after.cast(pa.binary())
