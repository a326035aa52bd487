"""Which partition a key belongs to: murmur2, as in Kafka's Java client and all that follow it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from kohort.protocol.records import kernels
from kohort.protocol.records.columns import _parts

__all__ = ["murmur2", "partitions_of"]

_POSITIVE: Final = 0x7FFFFFFF


def murmur2(key: bytes) -> int:
    """The 32-bit hash of a key, signed as in Java."""
    hashes = np.empty(1, np.int32)
    data = np.frombuffer(key, np.uint8) if key else np.empty(0, np.uint8)
    kernels.murmur2_rows(np.array([0, len(key)], np.int32), data, hashes)
    return int(hashes[0])


def partitions_of(keys: pa.Array, partitions: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The partition of each key (binary or string) of a topic; -1 for a null key, which the sender may put anywhere.

    Equal to `(murmur2(key) & 0x7fffffff) % partitions`.

    Raises:
        ValueError: the topic has no partitions, or the keys are neither bytes nor strings.
    """
    if partitions < 1:
        raise ValueError(f"a topic has at least 1 partition, not {partitions}")
    try:
        ends, data, valid = _parts(keys.cast(pa.binary()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(f"keys are {keys.type}, not bytes or strings") from None
    hashes = np.empty(len(keys), np.int32)
    kernels.murmur2_rows(ends, data, hashes)
    hashes &= _POSITIVE
    hashes %= partitions
    hashes[~valid] = -1
    return hashes
