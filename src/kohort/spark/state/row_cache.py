"""Rows that a store was last written, in memory: what is touched again and again is found without RocksDB.

RocksDB takes some microseconds of processor time to find a key, whatever it caches, and no other thread of Python runs
meanwhile; here it is about one, and others run. Only what this process has written in epochs is kept: an aggregate's
epoch writes each key that it reads. Tables that are joined, and what was restored, are read from RocksDB.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kohort.client.column_codec import load_compiled
from kohort.protocol.records.arrow import bytes_column
from kohort.spark.state import row_cache_kernels as kernels
from kohort.spark.state.rocksdb_rows import SortedRows

_SMALLEST: Final = 64 * 1024
_PER_SLOT: Final = 64
"""Bytes of rows for each slot: no more than half of them are used if rows have 128 bytes."""
_SLOT: Final = 8
_LARGEST_RESULT: Final = 2**31 - 1


class RowBudget:
    """Memory that the caches of a process share: none has more than an equal part, or than others have left.

    Args:
        size: bytes, of them all; while a cache moves its rows, it has both tables.
    """

    def __init__(self, size: int) -> None:
        self._size = size * _PER_SLOT // (_PER_SLOT + 2 * _SLOT)
        self._held = self._caches = 0
        self._lock = threading.Lock()

    def join(self) -> None:
        """There is a cache more, which has `_SMALLEST` bytes."""
        with self._lock:
            self._caches += 1
            self._held += _SMALLEST

    def leave(self, held: int) -> None:
        """There is a cache less, which had so many bytes."""
        with self._lock:
            self._caches -= 1
            self._held -= held

    @property
    def part(self) -> int:
        """Bytes of rows that a cache may have if others leave as much; with its slots it has some more."""
        return max(self._size // max(self._caches, 1), _SMALLEST)

    def exchange(self, held: int, wanted: int) -> int:
        """Gives a cache that holds so many bytes as many as it wants and may have."""
        with self._lock:
            left = self._size - self._held + held
            given = max(min(wanted, self.part, left), _SMALLEST)
            self._held += given - held
            return given


class _Table(NamedTuple):
    """Where rows are; see `row_cache_kernels`."""

    slots: np.ndarray[tuple[int], np.dtype[np.int64]]
    ring: np.ndarray[tuple[int], np.dtype[np.uint8]]

    @classmethod
    def of(cls, size: int) -> _Table:
        """An empty one for so many bytes of rows."""
        slots = max(kernels.BUCKET, 1 << (size // _PER_SLOT - 1).bit_length())
        return cls(np.full(slots, kernels.FREE), np.empty(size, np.uint8))


class RowCache:
    """The rows that were put in last, as many as there is memory for. Not for several threads at once.

    It begins small, and grows as far as the budget lets it.
    """

    def __init__(self, budget: RowBudget) -> None:
        self._budget = budget
        self._table: _Table | None = None
        self._end = 0
        self._full_at = 0
        """When the end is there, rows that were replaced are left out, or the table grows."""
        self._puts = 0
        """How many rows were put in since it was last looked how many there are."""

    @property
    def size(self) -> int:
        """Bytes of memory that it has."""
        return 0 if self._table is None else sum(part.nbytes for part in self._table)

    def find(self, keys: pa.Array) -> tuple[pa.Array, pa.Array | None]:
        """The values of keys (binary), and for which of them there is none here; None: for none of them.

        A value is null where the key is null, and where there is none here.
        """
        if self._table is None:
            return _nothing(len(keys))
        column = bytes_column(keys, "key")
        key_parts = (_fixed(column.ends), _fixed(column.data), _fixed(column.valid))
        found, sizes = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        missing, total = kernels.find_rows(*self._table, self._end, *key_parts, found, sizes)
        if total > _LARGEST_RESULT:
            return _nothing(len(keys))
        ends, content = np.empty(len(keys) + 1, np.int32), np.empty(total, np.uint8)
        kernels.copy_values(self._table.ring, found, sizes, ends, content)
        valid = np.packbits(sizes >= 0, bitorder="little")
        values = pa.Array.from_buffers(pa.binary(), len(keys), [pa.py_buffer(each) for each in (valid, ends, content)])
        return values, pa.array(found == kernels.MISSING) if missing else None

    def put(self, rows: SortedRows) -> None:
        """Takes rows in, in place of those with the same keys; of those without a value it has none any more."""
        keys, values = bytes_column(rows.keys, "key"), bytes_column(rows.values, "value")
        count = len(values.valid)
        size = int(keys.ends[-1]) - int(keys.ends[0]) + int(values.ends[-1]) - int(values.ends[0])
        table = self._with_room(size + count * kernels.HEADER, count)
        self._end = kernels.put_rows(
            *table,
            self._end,
            *(_fixed(part) for part in (keys.ends, keys.data, values.ends, values.data, values.valid)),
        )

    def clear(self) -> None:
        """Forgets all rows, and gives the memory back. It may be used again."""
        if self._table is not None:
            self._budget.leave(len(self._table.ring))
            self._table, self._end = None, 0

    def _with_room(self, size: int, count: int) -> _Table:
        """The table, with room for so many rows of so many bytes more, if it may have as much.

        Otherwise they replace the oldest. Rows are moved to a table of the same size, without those that were replaced,
        where that leaves a quarter of it: so each byte that is put in moves three others at most.
        """
        if self._table is None:
            load()
            self._table, self._full_at = _Table.of(_SMALLEST), _SMALLEST
            self._budget.join()
        slots, ring = self._table
        has = len(ring)
        full = self._end + size > self._full_at
        self._puts += count
        if not full and self._puts <= len(slots) // 2 and has <= self._budget.part:
            return self._table
        self._puts = count
        places = slots >> kernels.TAG_BITS
        rows = np.sort(places[places + has >= self._end])
        live = int(kernels.rows_bytes(ring, rows))
        wanted = has
        while wanted < 2 * max(live + size, _PER_SLOT * (len(rows) + count)):
            wanted *= 2
        given = self._budget.exchange(has, wanted)
        if given != has or (full and live <= has * 3 // 4):
            self._table, self._full_at = _Table.of(given), given
            self._end = kernels.move_rows(ring, rows, *self._table)
        elif full:
            self._full_at = self._end + has // 4
        return self._table


def _nothing(count: int) -> tuple[pa.Array, pa.Array]:
    """What `find` gives where no key is there."""
    return pa.nulls(count, pa.binary()), pa.array(np.ones(count, np.bool_))


def _fixed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same, not to be changed: the loops are compiled for such arrays alone."""
    view = array.view()
    view.flags.writeable = False
    return view


@cache
def load() -> None:
    """Loads the compiled loops, once."""

    def call() -> None:
        cache, table = RowCache(RowBudget(0)), _Table.of(_SMALLEST)
        cache._table, cache._full_at = table, _SMALLEST
        rows = SortedRows(pa.array([b"k"], pa.binary()), pa.array([b"v"], pa.binary()))
        cache.put(rows)
        cache.find(rows.keys)
        none = np.zeros(0, np.int64)
        kernels.rows_bytes(table.ring, none)
        kernels.move_rows(table.ring, none, *_Table.of(_SMALLEST))

    load_compiled(call)
