"""Records in Arrow: their schema, and columns as the plain numpy arrays that kernels work on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

__all__ = ["HEADER_TYPE", "RECORD_SCHEMA", "BytesColumn", "bytes_column", "cast_column", "column_of_bytes"]

HEADER_TYPE: Final = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])

RECORD_SCHEMA: Final = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("item", HEADER_TYPE, nullable=False)), nullable=False),
    ]
)
"""The columns that records are decoded into. A timestamp of -1 ms means that the record has none."""


class BytesColumn(NamedTuple):
    """A column of bytes: value i is `data[ends[i]:ends[i + 1]]`, or null where `valid[i]` is false.

    Attributes:
        ends: int32, one more than there are values; they ascend and lie within `data`.
        data: uint8; shared with the Arrow array.
        valid: bool.
    """

    ends: np.ndarray[Any, np.dtype[np.int32]]
    data: np.ndarray[Any, np.dtype[np.uint8]]
    valid: np.ndarray[Any, np.dtype[np.bool_]]


def cast_column(column: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    """`column` as another type.

    Raises:
        ValueError: that can't be, for this type or these values.
    """
    try:
        return column.cast(kind)
    except pa.ArrowException as error:
        raise ValueError(f"column {name} is {column.type}, which can't be made {kind}: {error}") from None


def bytes_column(column: pa.Array, name: str) -> BytesColumn:
    """The parts of a column of bytes or strings; the bytes are copied only if its type demands it.

    Raises:
        ValueError: another type, more than 2 GiB, or an array whose offsets lead outside its data.
    """
    binary = cast_column(column, pa.binary(), name)
    size = len(binary)
    _, offsets, content = binary.buffers()
    data = np.frombuffer(content, np.uint8) if content is not None and content.size else np.empty(0, np.uint8)
    if offsets is None or not size:
        return BytesColumn(np.zeros(size + 1, np.int32), data, np.zeros(size, np.bool_))
    ends = np.frombuffer(offsets, np.int32)[binary.offset : binary.offset + size + 1]
    # Arrow trusts whoever made the array; the kernels must not.
    if len(ends) != size + 1 or ends[0] < 0 or ends[-1] > len(data) or (ends[1:] < ends[:-1]).any():
        raise ValueError(f"column {name} is no valid Arrow array: its offsets lead outside its data")
    valid = binary.is_valid().to_numpy(zero_copy_only=False) if binary.null_count else np.ones(size, np.bool_)
    return BytesColumn(ends, data, valid)


def column_of_bytes(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """A column (binary or string) of bytes in Python, less than 2 GiB of them.

    `pa.array` would do, but for the first time in a process it imports pandas where that is installed, which takes
    half a second: too long for an event loop.
    """
    rows = len(values)
    ends = np.zeros(rows + 1, np.int32)
    np.cumsum([0 if value is None else len(value) for value in values], out=ends[1:])
    content = pa.py_buffer(b"".join([value for value in values if value]))
    nulls = values.count(None)
    valid = pa.py_buffer(np.packbits([value is not None for value in values], bitorder="little")) if nulls else None
    return pa.Array.from_buffers(kind, rows, [valid, pa.py_buffer(ends), content], nulls)
