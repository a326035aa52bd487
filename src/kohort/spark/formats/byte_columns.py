"""Columns as plain numpy arrays, and what decoders build of them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from kohort.spark.formats.text_kernels import gather

Bools = np.ndarray[Any, np.dtype[np.bool_]]
Ints = np.ndarray[Any, np.dtype[Any]]

_EMPTY: Final = np.empty(0, np.uint8)


class ByteColumn:
    """A column of bytes as numpy arrays: where its values lie.

    Attributes:
        data: uint8, not to be written to.
        starts, sizes: int32, in bytes.
        there: bool: false for nulls.
    """

    def __init__(self, data: Ints, starts: Ints, sizes: Ints, there: Bools) -> None:
        self.data, self.starts, self.sizes, self.there = data, starts, sizes, there

    def value(self, row: int) -> bytes:
        start = int(self.starts[row])
        return self.data[start : start + int(self.sizes[row])].tobytes()


def byte_column(values: pa.Array | pa.ChunkedArray) -> ByteColumn:
    """A column of bytes or strings (less than 2 GiB of them) as numpy arrays."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not pa.types.is_binary(values.type):
        values = values.cast(pa.binary())
    rows = len(values)
    _, offsets, content = values.buffers()
    data = np.frombuffer(content, np.uint8) if content is not None and content.size else _EMPTY
    data = data.view()
    data.flags.writeable = False  # compiled code is another one for arrays that can be written to
    if not rows or offsets is None:
        return ByteColumn(data, np.zeros(rows, np.int32), np.zeros(rows, np.int32), np.zeros(rows, np.bool_))
    ends = np.frombuffer(offsets, np.int32)[values.offset : values.offset + rows + 1]
    there = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else np.ones(rows, np.bool_)
    return ByteColumn(data, ends[:-1].copy(), np.diff(ends), there)


def fixed(kind: pa.DataType, numbers: Ints, there: Bools) -> pa.Array:
    """A column of numbers (rows of `numbers`), each as wide as Arrow's."""
    return pa.Array.from_buffers(kind, len(numbers), [bitmap(there), pa.py_buffer(np.ascontiguousarray(numbers))])


def booleans(values: Bools, there: Bools) -> pa.Array:
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [bitmap(there), bits])


def gathered(kind: pa.DataType, data: Ints, starts: Ints, sizes: Ints, there: Bools) -> pa.Array:
    """A column (binary or string) of pieces of `data`."""
    ends = np.empty(len(starts) + 1, np.int32)
    out = np.empty(int(sizes[there].sum(dtype=np.int64)), np.uint8)
    gather(data, starts, sizes, there, ends, out)
    return pa.Array.from_buffers(kind, len(starts), [bitmap(there), pa.py_buffer(ends), pa.py_buffer(out)])


def bitmap(there: Bools) -> pa.Buffer | None:
    """Arrow's validity bits; None if all is there."""
    return None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
