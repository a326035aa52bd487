"""Columns of keys and values as bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.cli.data.json_columns import as_json_text


def as_bytes(column: pa.Array) -> pa.Array:
    """A key's or value's bytes: strings and bytes as they are, anything else as JSON; null stays null."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return as_bytes(column.dictionary_decode())
    if any(check(kind) for check in _PLAIN):
        return column.cast(pa.binary())
    texts = as_json_text(column)
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.string())).cast(pa.binary())


def content(column: pa.Array) -> memoryview:
    """The bytes of a column of bytes or strings, one value after another."""
    if not len(column):
        return memoryview(b"")
    _, ends, data = column.buffers()
    ends = np.frombuffer(ends, np.int32)
    return memoryview(data)[ends[column.offset] : ends[column.offset + len(column)]]


_PLAIN = (
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view,
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
)  # fmt: skip
