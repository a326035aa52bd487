"""Rows that a store was last written, in memory: what is touched again and again is found without RocksDB.

RocksDB takes some microseconds of processor time to find a key, whatever it caches, and no other thread of Python runs
meanwhile; here it is about one, and others run. Only what was written is kept: an epoch writes each key that it reads.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kohort.protocol.records.arrow import bytes_column
from kohort.spark.state import row_cache_kernels as kernels
from kohort.spark.state.rocksdb_rows import SortedRows

_SMALLEST: Final = 64 * 1024
_PER_SLOT: Final = 64
"""Bytes of rows for each slot: no more than half of them are used if rows have 128 bytes."""
_SLOT: Final = 8
_LARGEST_RESULT: Final = 2**31 - 1


class RowBudget:
    """Memory that the caches of a process share in equal parts.

    Args:
        size: bytes, of them all.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._caches = 0
        self._lock = threading.Lock()

    def join(self) -> None:
        """There is a cache more."""
        with self._lock:
            self._caches += 1

    def leave(self) -> None:
        """There is a cache less."""
        with self._lock:
            self._caches -= 1

    @property
    def share(self) -> int:
        """Bytes that each cache may have for its rows; with its slots it has some more."""
        return self._size // max(self._caches, 1) * _PER_SLOT // (_PER_SLOT + 2 * _SLOT)


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

    @property
    def size(self) -> int:
        """Bytes of memory that it has."""
        return 0 if self._table is None else sum(part.nbytes for part in self._table)

    def find(self, keys: pa.Array) -> tuple[pa.Array, pa.Array | None]:
        """The values of keys (binary), and for which of them there is none here; None: for none of them.

        A value is null if null was put in last, or the key is null, and where there is none here.
        """
        if self._table is None:
            return pa.nulls(len(keys), pa.binary()), pa.array(np.ones(len(keys), np.bool_))
        column = bytes_column(keys, "key")
        key_parts = (_fixed(column.ends), _fixed(column.data), _fixed(column.valid))
        found, sizes = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        missing, total = kernels.find_rows(*self._table, self._end, *key_parts, found, sizes)
        if total > _LARGEST_RESULT:
            return pa.nulls(len(keys), pa.binary()), pa.array(np.ones(len(keys), np.bool_))
        ends, content = np.empty(len(keys) + 1, np.int32), np.empty(total, np.uint8)
        kernels.copy_values(self._table.ring, found, sizes, ends, content)
        valid = np.packbits(sizes >= 0, bitorder="little")
        values = pa.Array.from_buffers(pa.binary(), len(keys), [pa.py_buffer(each) for each in (valid, ends, content)])
        return values, pa.array(found == kernels.MISSING) if missing else None

    def put(self, rows: SortedRows) -> None:
        """Takes rows in, in place of those with the same keys; a null value says that there is none."""
        keys, values = bytes_column(rows.keys, "key"), bytes_column(rows.values, "value")
        count = len(values.valid)
        size = int(keys.ends[-1]) - int(keys.ends[0]) + int(values.ends[-1]) - int(values.ends[0])
        table = self._with_room(size + count * kernels.HEADER)
        self._end = kernels.put_rows(
            *table,
            self._end,
            *(_fixed(part) for part in (keys.ends, keys.data, values.ends, values.data, values.valid)),
        )

    def clear(self) -> None:
        """Forgets all rows, and gives the memory back. It may be used again."""
        if self._table is not None:
            self._table, self._end = None, 0
            self._budget.leave()

    def _with_room(self, size: int) -> _Table:
        """The table, which has room for so many bytes more, unless that is more than its share."""
        if self._table is None:
            load()
            self._budget.join()
            self._table = _Table.of(_SMALLEST)
        share = max(self._budget.share, _SMALLEST)
        has = len(self._table.ring)
        if has > share or (has < share and self._end + size > has):
            places = self._table.slots >> kernels.TAG_BITS
            rows = np.sort(places[places + has >= self._end])
            wanted = has
            while wanted < 2 * (int(kernels.rows_bytes(self._table.ring, rows)) + size) and wanted < share:
                wanted *= 2
            made = _Table.of(min(wanted, share))
            self._end = kernels.move_rows(self._table.ring, rows, *made)
            self._table = made
        return self._table


def _fixed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same, not to be changed: the loops are compiled for such arrays alone."""
    view = array.view()
    view.flags.writeable = False
    return view


@cache
def load() -> None:
    """Loads the compiled loops, once. Other threads may load others meanwhile: see `kohort.client.column_codec`."""
    attempts = 3
    while attempts:
        attempts -= 1
        try:
            small = RowCache(RowBudget(0))
            small._table = _Table.of(_SMALLEST)
            rows = SortedRows(pa.array([b"k"], pa.binary()), pa.array([b"v"], pa.binary()))
            small.put(rows)
            small.find(rows.keys)
            kernels.rows_bytes(small._table.ring, np.zeros(1, np.int64))
            kernels.move_rows(small._table.ring, np.zeros(1, np.int64), *_Table.of(_SMALLEST))
            return
        except SystemError:
            if not attempts:
                raise
