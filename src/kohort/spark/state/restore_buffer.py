"""Records of a changelog that are gathered, to be written to the store together.

A store that is far behind takes many records at once as a file (`Store.ingest`), in half the processor time of ordinary
writes. What is gathered counts for nothing until then: the position is before it, and it is read again if need be.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from kohort.spark.state.rocksdb_rows import SortedRows, sorted_by_key
from kohort.spark.state.store import Store

FAR_BEHIND: Final = 100_000
"""From so many offsets on, records are gathered."""

FULL: Final = 32 * 1024 * 1024
"""Bytes that are gathered for all stores of an instance together; then those of the store that has most are written."""

_WORTH_A_FILE: Final = 4 * 1024 * 1024
"""Less is written as usual, as with more than some 16 stores at a time: small files would be compacted too often."""


@dataclass(slots=True, eq=False)
class RestoreBuffer:
    """What is gathered for a store.

    Attributes:
        position: offset in the changelog after it.
        size: in bytes.
        sorting: `sort`, once it was submitted.
    """

    position: int = -1
    size: int = 0
    sorting: Future[None] | None = None
    _sorted: SortedRows | None = None
    _added_at: float = 0
    _keys: list[pa.Array] = field(default_factory=list)
    _values: list[pa.Array] = field(default_factory=list)

    def add(self, keys: pa.Array, values: pa.Array, position: int) -> None:
        """Adds records that follow, up to a position."""
        self._keys.append(keys)
        self._values.append(values)
        self.size += keys.nbytes + values.nbytes
        self.position = position
        self._added_at = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Seconds since something was added."""
        return time.monotonic() - self._added_at

    def sort(self) -> None:
        """Sorts what was gathered, in a thread of its own beside the write before. Nothing may be added any more."""
        self._sorted = sorted_by_key(_joined(self._keys), _joined(self._values))  # no names, which would keep them

    def write(self, store: Store, partition: int) -> None:
        """Writes all to the store, once it is sorted, with the position after it. Raises as `Store.write`."""
        assert self.sorting is not None
        self.sorting.result()
        rows, self._sorted = self._sorted, None
        assert rows is not None
        if self.size >= _WORTH_A_FILE:
            store.ingest(rows, self.position, partition)
        else:
            store.write(rows.keys, rows.values, self.position, partition)
        del rows
        pa.default_memory_pool().release_unused()  # Arrow would keep a hundred MiB


def _joined(parts: list[pa.Array]) -> pa.Array:
    """The parts as one array; they are gone then."""
    joined = pa.concat_arrays(parts)
    parts.clear()
    return joined
