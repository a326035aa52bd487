"""Partitions of keys: by murmur2, as in Kafka's Java client and most others, or by librdkafka's CRC-32."""

from __future__ import annotations

from typing import Any, Final, Literal
from zlib import crc32

from kohort.extras import ARROW, require

try:
    import numpy as np
    import pyarrow as pa
except ImportError:
    require("arrow", "kohort.protocol.records.partitioner", ARROW)
    raise

from kohort.protocol.records import kernels
from kohort.protocol.records.arrow import bytes_column

__all__ = ["Partitioner", "murmur2", "partition_of", "partitions_of"]

Partitioner = Literal["murmur2", "crc32"]
"""The hash of a key: that of Kafka's Java client, or librdkafka's default."""

_POSITIVE: Final = 0x7FFFFFFF


def murmur2(key: bytes) -> int:
    """The 32-bit hash of a key, signed as in Java."""
    hashes = np.empty(1, np.int32)
    data = np.frombuffer(key, np.uint8) if key else np.empty(0, np.uint8)
    kernels.murmur2_rows(np.array([0, len(key)], np.int32), data, hashes)
    return int(hashes[0])


def partition_of(key: bytes, partitions: int, partitioner: Partitioner = "murmur2") -> int:
    """The partition of one key; see `partitions_of`."""
    hashed = murmur2(key) & _POSITIVE if partitioner == "murmur2" else crc32(key)
    return hashed % partitions


def partitions_of(
    keys: pa.Array | pa.ChunkedArray, partitions: int, partitioner: Partitioner = "murmur2"
) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The partition of each key (binary or string); -1 for a null key, which may be sent to any partition.

    Equal to `(murmur2(key) & 0x7fffffff) % partitions`, or to `crc32(key) % partitions`.

    Raises:
        ValueError: an invalid number of partitions, or keys that are neither bytes nor strings.
    """
    if not 1 <= partitions <= _POSITIVE:
        raise ValueError(f"a topic has 1 to {_POSITIVE} partitions, not {partitions}")
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    column = bytes_column(keys, "keys")
    hashes = np.empty(len(keys), np.int32)
    if partitioner == "murmur2":
        kernels.murmur2_rows(column.ends, column.data, hashes)
        hashes &= _POSITIVE
        hashes %= partitions
    else:
        kernels.crc32_rows(column.ends, column.data, hashes)
        hashes = (hashes.view(np.uint32) % np.uint32(partitions)).astype(np.int32)
    hashes[~column.valid] = -1
    return hashes
