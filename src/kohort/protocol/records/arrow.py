"""Records in Arrow: their schema, and columns as numpy arrays for the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kohort.extras import ARROW, require

try:
    import numpy as np
    import pyarrow as pa
except ImportError:
    require("arrow", "reading records as Arrow columns", ARROW)
    raise

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
"""The columns of decoded records. A timestamp of -1 ms means none."""


class BytesColumn(NamedTuple):
    """A column of bytes: value i is `data[ends[i]:ends[i + 1]]`, or null where `valid[i]` is false.

    Attributes:
        ends: int32, one more than values; ascending offsets into `data`.
        data: uint8; shared with the Arrow array.
        valid: bool.
    """

    ends: np.ndarray[Any, np.dtype[np.int32]]
    data: np.ndarray[Any, np.dtype[np.uint8]]
    valid: np.ndarray[Any, np.dtype[np.bool_]]


def cast_column(column: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    """Casts a column to another type.

    Raises:
        ValueError: the type or a value can't be cast.
    """
    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except pa.ArrowException as error:
        raise ValueError(f"column {name} is {column.type}, which can't be made {kind}: {error}") from None


def bytes_column(column: pa.Array, name: str) -> BytesColumn:
    """Returns the parts of a column of bytes or strings; the bytes are copied only if the type requires it.

    Raises:
        ValueError: another type, more than 2 GiB, or offsets outside the data.
    """
    binary = cast_column(column, pa.binary(), name)
    size = len(binary)
    _, offsets, content = binary.buffers()
    data = np.frombuffer(content, np.uint8) if content is not None and content.size else np.empty(0, np.uint8)
    if offsets is None or not size:
        return BytesColumn(np.zeros(size + 1, np.int32), data, np.zeros(size, np.bool_))
    ends = np.frombuffer(offsets, np.int32)[binary.offset : binary.offset + size + 1]
    # Arrow doesn't validate offsets, and the kernels rely on them.
    if len(ends) != size + 1 or ends[0] < 0 or ends[-1] > len(data) or (ends[1:] < ends[:-1]).any():
        raise ValueError(f"column {name} is no valid Arrow array: its offsets lead outside its data")
    valid = binary.is_valid().to_numpy(zero_copy_only=False) if binary.null_count else np.ones(size, np.bool_)
    return BytesColumn(ends, data, valid)


def column_of_bytes(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """Makes a column (binary or string) of Python's bytes, less than 2 GiB.

    Unlike `pa.array`, it doesn't import pandas on first use, which takes half a second: too long for an event loop.
    """
    rows = len(values)
    ends = np.zeros(rows + 1, np.int32)
    np.cumsum([0 if value is None else len(value) for value in values], out=ends[1:])
    content = pa.py_buffer(b"".join([value for value in values if value]))
    nulls = values.count(None)
    valid = pa.py_buffer(np.packbits([value is not None for value in values], bitorder="little")) if nulls else None
    return pa.Array.from_buffers(kind, rows, [valid, pa.py_buffer(ends), content], nulls)
