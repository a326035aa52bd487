"""Confluent's wire format: a zero, the schema's id as four bytes, the highest first, and what was written by it.

    00 00 00 00 07 …

Protocol Buffers have the message's indexes before the message: how many, and each, as zigzag varints; a lone 0 is the
first message of the schema.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.formats.byte_columns import ByteColumn, Ints, gathered

HEADER: Final = 5
NO_ID: Final = -1
FIRST_MESSAGE: Final = b"\0"
"""The indexes of a schema's first message."""


def schema_ids(at: ByteColumn) -> tuple[Ints, dict[int, str]]:
    """The id in each value (int64; `NO_ID` for nulls, and for what isn't framed), and why those aren't, by row."""
    long_enough = at.there & (at.sizes >= HEADER)
    ids = np.full(len(at.starts), NO_ID, np.int64)
    rows = np.flatnonzero(long_enough)
    starts = at.starts[rows].astype(np.int64)
    framed = at.data[starts] == 0
    rows, starts = rows[framed], starts[framed]
    parts = [at.data[starts + 1 + place].astype(np.int64) << (24 - 8 * place) for place in range(4)]
    ids[rows] = parts[0] | parts[1] | parts[2] | parts[3]
    return ids, {row: _why(at, row) for row in np.flatnonzero(at.there & (ids == NO_ID)).tolist()}


def _why(at: ByteColumn, row: int) -> str:
    value = at.value(row)
    if not value or value[0] == 0:
        return f"it has {len(value)} bytes, and no schema's id: a registry's serializer writes 0 and four bytes first"
    return f"it begins with 0x{value[0]:02x}, not with 0 and a schema's id, as a registry's serializer writes it"


def without_header(at: ByteColumn, rows: Ints) -> pa.Array:
    """What follows the ids in some rows, which have them."""
    starts, sizes = at.starts[rows] + np.int32(HEADER), at.sizes[rows] - np.int32(HEADER)
    return gathered(pa.binary(), at.data, starts, sizes, np.ones(len(rows), np.bool_))


def with_header(schema_id: int, values: pa.Array, indexes: bytes = b"") -> pa.Array:
    """Values with an id, and for Protocol Buffers a message's indexes, before them. Nulls stay."""
    header = pa.scalar(struct.pack(">bI", 0, schema_id) + indexes, pa.binary())
    return pc.binary_join_element_wise(header, values, pa.scalar(b"", pa.binary()))
