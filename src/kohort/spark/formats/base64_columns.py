"""Base64 of one line, whole columns at once, by compiled loops."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from kohort.protocol.records.jit import kernel
from kohort.spark.formats.byte_columns import bitmap, byte_column

__all__ = ["base64_texts", "unbase64"]

_LETTERS: Final = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_PADDING: Final = np.uint8(ord("="))
_PAIRS: Final = np.stack([np.repeat(_LETTERS, 64), np.tile(_LETTERS, 64)], axis=1).reshape(-1).view(np.uint16)
"""The two letters of 12 bits, as they lie in memory."""
_BAD: Final = 1 << 24
_BITS: Final = np.full((4, 256), _BAD, np.uint32)
"""The bits that a letter stands for, by its place among four."""
for _place in range(4):
    _BITS[_place, _LETTERS] = np.arange(64) << 6 * (3 - _place)


def base64_texts(column: pa.Array) -> pa.Array:
    """Binary as base64 (STRING); null for null."""
    given = byte_column(column)
    sizes = np.where(given.there, (given.sizes.astype(np.int64) + 2) // 3 * 4, 0)
    ends = _ends(sizes)
    out = np.empty(int(ends[-1]), np.uint8)
    _encode(given.data, given.starts, given.sizes, given.there, _PAIRS, ends, out.view(np.uint16))
    short = given.there & (given.sizes % 3 > 0)
    out[ends[1:][short] - 1] = _PADDING
    out[ends[1:][short & (given.sizes % 3 == 1)] - 2] = _PADDING
    return pa.Array.from_buffers(pa.string(), len(column), [bitmap(given.there), pa.py_buffer(ends), pa.py_buffer(out)])


def unbase64(column: pa.Array) -> pa.Array:
    """Base64 as binary; null for null.

    Raises:
        ValueError: a text isn't that.
    """
    given = byte_column(column)
    sizes = np.where(given.there, given.sizes, 0)
    if (sizes % 4).any():
        raise ValueError("base64 whose length is no multiple of 4")
    last = given.starts + sizes - 1
    data = given.data if len(given.data) else np.zeros(1, np.uint8)
    padded = (sizes > 0) & (data[np.maximum(last, 0)] == _PADDING)
    twice = padded & (data[np.maximum(last - 1, 0)] == _PADDING)
    ends = _ends(sizes.astype(np.int64) // 4 * 3 - padded - twice)
    out = np.empty(int(ends[-1]), np.uint8)
    row = _decode(given.data, given.starts, _BITS, ends, out)
    if row >= 0:
        raise ValueError(f"row {row}: not base64")
    return pa.Array.from_buffers(pa.binary(), len(column), [bitmap(given.there), pa.py_buffer(ends), pa.py_buffer(out)])


def _ends(sizes: Any) -> Any:
    """Offsets of Arrow's.

    Raises:
        ValueError: a column can't hold so much.
    """
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    if ends[-1] >= 2**31:
        raise ValueError(f"{ends[-1]} bytes of base64: a column has room for {2**31 - 1}")
    return ends.astype(np.int32)


@kernel
def _encode(data: Any, starts: Any, sizes: Any, there: Any, pairs: Any, ends: Any, out: Any) -> None:
    """`out` has two letters in each of its numbers."""
    for row in range(len(starts)):
        if not there[row]:
            continue
        at, to = starts[row], ends[row] // 2
        whole, left = sizes[row] // 3, sizes[row] % 3
        for _ in range(whole):
            word = np.uint32(data[at]) << 16 | np.uint32(data[at + 1]) << 8 | np.uint32(data[at + 2])
            out[to] = pairs[word >> 12]
            out[to + 1] = pairs[word & 4095]
            at += 3
            to += 2
        if left:
            word = np.uint32(data[at]) << 16
            if left == 2:
                word |= np.uint32(data[at + 1]) << 8
            out[to] = pairs[word >> 12]
            out[to + 1] = pairs[word & 4095]


@kernel
def _decode(data: Any, starts: Any, bits: Any, ends: Any, out: Any) -> Any:
    """The first row that isn't base64, or -1. Each row has so many letters as its bytes in `ends` take."""
    for row in range(len(starts)):
        at, to = starts[row], ends[row]
        size = ends[row + 1] - to
        all_bits = np.uint32(0)
        for _ in range(size // 3):
            word = bits[0, data[at]] | bits[1, data[at + 1]] | bits[2, data[at + 2]] | bits[3, data[at + 3]]
            all_bits |= word
            out[to] = word >> 16
            out[to + 1] = word >> 8 & 255
            out[to + 2] = word & 255
            at += 4
            to += 3
        if size % 3:
            word = bits[0, data[at]] | bits[1, data[at + 1]]
            if size % 3 == 2:
                word |= bits[2, data[at + 2]]
                out[to + 1] = word >> 8 & 255
            all_bits |= word
            out[to] = word >> 16
        if all_bits >= _BAD:
            return row
    return -1
