"""Arrow columns as the plain numpy arrays that kernels work on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

__all__ = ["BytesColumn", "bytes_column", "cast_column"]


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
