"""The loop that checks records, compiled by numba: `kohort.log.record_checks` says what it is for."""

from __future__ import annotations

from typing import Final

import numpy as np

from kohort.protocol.records.jit import kernel
from kohort.protocol.records.kernels import Bytes, read_varint

__all__ = ["check"]

_NO_DELTA: Final = -(2**63)


def check(payload: bytes, count: int, keyed: bool, earliest: int, latest: int, exempt: int) -> int | None:
    """Checks that a payload is so many records, with offset deltas 0, 1, 2, …

    Args:
        keyed: whether each needs a key.
        earliest, latest: the timestamp deltas they may have.
        exempt: a timestamp delta that is allowed beside these.

    Returns:
        The latest timestamp delta; None if anything is wrong, which somebody else has to name.
    """
    found = _check(np.frombuffer(payload, np.uint8), count, keyed, earliest, latest, exempt)
    return None if found == _NO_DELTA else int(found)


@kernel
def _check(data: Bytes, count: int, keyed: bool, earliest: int, latest: int, exempt: int) -> int:
    pos = 0
    end = len(data)
    greatest = _NO_DELTA
    for index in range(count):
        length, pos = read_varint(data, pos, end)
        if pos < 0 or length < 1 or length > end - pos:
            return _NO_DELTA
        stop = pos + length
        delta, pos = read_varint(data, pos + 1, stop)
        if pos < 0:
            return _NO_DELTA
        place, pos = read_varint(data, pos, stop)
        if pos < 0 or place != index:
            return _NO_DELTA
        size, pos = read_varint(data, pos, stop)
        if pos < 0 or size < -1 or size > stop - pos or (keyed and size < 0):
            return _NO_DELTA
        pos += max(size, 0)
        size, pos = read_varint(data, pos, stop)
        if pos < 0 or size < -1 or size > stop - pos:
            return _NO_DELTA
        pos += max(size, 0)
        headers, pos = read_varint(data, pos, stop)
        if pos < 0 or headers < 0 or headers > stop - pos:
            return _NO_DELTA
        for _ in range(headers):
            size, pos = read_varint(data, pos, stop)
            if pos < 0 or size < 0 or size > stop - pos:
                return _NO_DELTA
            pos += size
            size, pos = read_varint(data, pos, stop)
            if pos < 0 or size < -1 or size > stop - pos:
                return _NO_DELTA
            pos += max(size, 0)
        if pos != stop:
            return _NO_DELTA
        if (delta < earliest or delta > latest) and delta != exempt:
            return _NO_DELTA
        greatest = max(greatest, delta)
    return greatest if pos == end else _NO_DELTA
