"""Rows of RocksDB as Arrow and back, in the order of their keys."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc
from rocksdict import Rdict, ReadOptions, SstFileWriter, WriteBatch

ROW_SCHEMA: Final = pa.schema([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())])
"""The schema of `Store.scan`."""


def iterate(db: Rdict, start: bytes | None, end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values from `start` (included) to `end` (not included), in key order."""
    rows: Any = db.items(from_key=start, read_opt=_until(end))
    return cast(Iterator[tuple[bytes, bytes]], rows)


def check_iteration_ended(db: Rdict, last: bytes | None, end: bytes | None) -> None:
    """Raises if the next block can't be read; `items` ends without an error then."""
    iterator = db.iter(_until(end))
    try:
        if last is None:
            iterator.seek_to_first()
        else:
            iterator.seek(last)
        while iterator.valid():
            iterator.next()
        iterator.status()
    finally:
        del iterator, db  # see `Store.scan`


def _until(end: bytes | None) -> ReadOptions:
    options = ReadOptions()
    if end is not None:
        options.set_iterate_upper_bound(end)
    return options


def rows_to_batch(rows: list[tuple[bytes, bytes]]) -> pa.RecordBatch:
    """Keys and values as a batch with `ROW_SCHEMA`."""
    keys, values = zip(*rows, strict=True) if rows else ((), ())
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.binary()), pa.array(values, pa.binary())], schema=ROW_SCHEMA)


def as_binary(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Text or binary values as one binary array."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column if column.type == pa.binary() else column.cast(pa.binary())


class SortedRows(NamedTuple):
    """Keys and values in key order, each key once; a null value deletes."""

    keys: pa.Array
    values: pa.Array

    def slice(self, start: int, end: int) -> SortedRows:
        """Those with these numbers."""
        return SortedRows(self.keys.slice(start, end - start), self.values.slice(start, end - start))

    def split(self, key: bytes) -> tuple[SortedRows, SortedRows]:
        """Those before the key, and those behind it."""
        start = pc.index(pc.greater_equal(self.keys, key), True).as_py()
        if start < 0:
            return self, self.slice(0, 0)
        end = start + (self.keys[start].as_py() == key)
        return self.slice(0, start), self.slice(end, len(self.keys))


def sorted_by_key(keys: pa.Array, values: pa.Array) -> SortedRows:
    """The last value of each key, in key order; without records that have no key. RocksDB writes those much faster.

    Keys and values are released one after the other, unless the caller has them.
    """
    if len(keys) != len(values):
        raise ValueError(f"{len(keys)} keys and {len(values)} values")
    order = pc.sort_indices(keys)  # stable, nulls at the end
    if keys.null_count:
        order = order.slice(0, len(keys) - keys.null_count)
    keys = keys.take(order)
    values = values.take(order)
    del order
    if len(keys) > 1:
        last = pc.not_equal(keys.slice(0, len(keys) - 1), keys.slice(1))
        if pc.min(last).as_py() is False:
            last = pa.concat_arrays([last, pa.array([True])])
            keys = keys.filter(last)
            values = values.filter(last)
    return SortedRows(keys, values)


def put_rows(into: WriteBatch | SstFileWriter, rows: SortedRows) -> None:
    """Puts rows into a batch or a file, in their order."""
    keys, values = rows
    put, delete = (into.put, into.delete) if isinstance(into, WriteBatch) else (into.__setitem__, into.__delitem__)
    if values.null_count:
        for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
            if value is None:
                delete(key)
            else:
                put(key, value)
    else:
        deque(map(put, keys.to_pylist(), values.to_pylist()), maxlen=0)
