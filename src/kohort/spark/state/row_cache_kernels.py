"""The loops of `RowCache`, compiled.

The ring holds rows one after the other: the key's size and the value's, four bytes each, and then both. A row's place
is a number that only grows; it lies at its remainder by the ring's size, and is there as long as the ring's end is no
more than that size behind it. Slots say where rows are, with 16 bits of the key's hash below: eight to a bucket, a line
of the processor's cache, of which the hash chooses one.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kohort.protocol.records.jit import copy_bytes, inlined, kernel

FREE: Final = np.int64(-(2**62))
"""A slot without a row."""
TAG_BITS: Final = 16
MISSING: Final = np.int64(-1)
"""Where a row is that isn't there."""

BUCKET: Final = 8
HEADER: Final = 8
_TAG: Final = 2**TAG_BITS - 1


@inlined
def _hash(data: Any, start: Any, size: Any) -> Any:
    """64 bits of some bytes, eight at a time."""
    prime = np.uint64(0x9E3779B97F4A7C15)
    h = np.uint64(size) * prime
    at, end = start, start + size
    while at < end:
        word = np.uint64(0)
        for i in range(min(8, end - at)):
            word |= np.uint64(data[at + i]) << np.uint64(8 * i)
        h = (h ^ word) * prime
        h ^= h >> np.uint64(32)
        at += 8
    h *= np.uint64(0xD6E8FEB86659FD93)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(32))


@inlined
def _write_size(ring: Any, at: Any, size: Any) -> Any:
    for i in range(4):
        ring[at + i] = np.uint8((size >> np.uint32(8 * i)) & np.uint32(0xFF))


@inlined
def _read_size(ring: Any, at: Any) -> Any:
    size = np.uint32(0)
    for i in range(4):
        size |= np.uint32(ring[at + i]) << np.uint32(8 * i)
    return size


@inlined
def _slot_of(slots: Any, ring: Any, end: Any, h: Any, data: Any, start: Any, size: Any) -> Any:
    """(The key's slot or -1, the slot that it would get: its own, one that is free, or that of the oldest row)."""
    first = np.int64(h & np.uint64(len(slots) // BUCKET - 1)) * BUCKET
    tag = np.int64(h >> np.uint64(64 - TAG_BITS))
    oldest: Any = first
    for slot in range(first, first + BUCKET):
        if slots[slot] < slots[oldest]:
            oldest = slot
        if slots[slot] & _TAG != tag:
            continue
        place = slots[slot] >> TAG_BITS
        if place + len(ring) < end:
            continue
        at = place % len(ring)
        if np.int64(_read_size(ring, at)) != size:
            continue
        same = True
        for i in range(size):
            if ring[at + HEADER + i] != data[start + i]:
                same = False
                break
        if same:
            return slot, slot
    return -1, oldest


@inlined
def _put(
    slots: Any,
    ring: Any,
    end: Any,
    keys: Any,
    key_at: Any,
    key_size: Any,
    values: Any,
    value_at: Any,
    value_size: Any,
) -> Any:
    """Puts a row in; with a value of size -1, which is null, takes it out. Returns the ring's end then."""
    h = _hash(keys, key_at, key_size)
    own, slot = _slot_of(slots, ring, end, h, keys, key_at, key_size)
    size = HEADER + key_size + value_size
    if value_size < 0 or size > len(ring) // 4:  # one that large would leave little room for others
        if own >= 0:
            slots[own] = FREE
        return end
    at = end % len(ring)
    if at + size > len(ring):
        end += len(ring) - at
        at = 0
    _write_size(ring, at, np.uint32(key_size))
    _write_size(ring, at + 4, np.uint32(value_size))
    copy_bytes(ring, at + HEADER, keys, key_at, key_size)
    copy_bytes(ring, at + HEADER + key_size, values, value_at, value_size)
    slots[slot] = end << TAG_BITS | np.int64(h >> np.uint64(64 - TAG_BITS))
    return end + size


@kernel
def put_rows(
    slots: Any,
    ring: Any,
    end: Any,
    key_ends: Any,
    keys: Any,
    value_ends: Any,
    values: Any,
    value_valid: Any,
) -> Any:
    """Puts rows in, each in its key's place. Returns the ring's end then."""
    for row in range(len(value_valid)):
        key_at, value_at = np.int64(key_ends[row]), np.int64(value_ends[row])
        value_size = np.int64(value_ends[row + 1]) - value_at if value_valid[row] else np.int64(-1)
        key_size = np.int64(key_ends[row + 1]) - key_at
        end = _put(slots, ring, end, keys, key_at, key_size, values, value_at, value_size)
    return end


@kernel
def move_rows(old: Any, rows: Any, slots: Any, ring: Any) -> Any:
    """Puts rows of another ring, at these places, into an empty one. Returns its end then."""
    end = np.int64(0)
    for row in range(len(rows)):
        at = rows[row] % len(old)
        key_size, value_size = np.int64(_read_size(old, at)), np.int64(_read_size(old, at + 4))
        end = _put(slots, ring, end, old, at + HEADER, key_size, old, at + HEADER + key_size, value_size)
    return end


@kernel
def rows_bytes(ring: Any, rows: Any) -> Any:
    """How many bytes rows at these places have."""
    total = np.int64(0)
    for row in range(len(rows)):
        at = rows[row] % len(ring)
        total += HEADER + np.int64(_read_size(ring, at)) + np.int64(_read_size(ring, at + 4))
    return total


@kernel
def find_rows(slots: Any, ring: Any, end: Any, key_ends: Any, keys: Any, key_valid: Any, found: Any, sizes: Any) -> Any:
    """Looks keys up. Returns how many are missing, and how many bytes the values of the others have.

    Args:
        found: out, where each value begins in the ring, or `MISSING`.
        sizes: out, of each value; -1 of one that is null. A null key has a null value.
    """
    missing, total = 0, np.int64(0)
    for row in range(len(found)):
        found[row], sizes[row] = 0, -1
        if not key_valid[row]:
            continue
        start = np.int64(key_ends[row])
        size = np.int64(key_ends[row + 1]) - start
        slot, _ = _slot_of(slots, ring, end, _hash(keys, start, size), keys, start, size)
        if slot < 0:
            found[row] = MISSING
            missing += 1
            continue
        at = (slots[slot] >> TAG_BITS) % len(ring)
        found[row] = at + HEADER + size
        sizes[row] = np.int64(_read_size(ring, at + 4))
        total += sizes[row]
    return missing, total


@kernel
def copy_values(ring: Any, found: Any, sizes: Any, ends: Any, out: Any) -> None:
    """Copies values that `find_rows` has found, one after the other; `ends` has an entry more."""
    end = np.int64(0)
    ends[0] = 0
    for row in range(len(found)):
        size = sizes[row]
        if size > 0:
            copy_bytes(out, end, ring, found[row], size)
            end += size
        ends[row + 1] = end
