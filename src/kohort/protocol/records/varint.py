"""The varints of records: zig-zag, up to 64 bits, one at a time. `kernels` has those for columns."""

from __future__ import annotations

from functools import lru_cache

__all__ = ["read_varint", "varint"]


@lru_cache(maxsize=4096)  # lengths and deltas repeat
def varint(value: int) -> bytes:
    """Encodes a signed number of up to 64 bits: seven bits a byte, the low ones first."""
    value = (value << 1 ^ value >> 63) & 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, pos: int) -> tuple[int, int]:
    """Returns the number at `pos`, and the position after it.

    Raises:
        IndexError: it doesn't end within the data, or has more than 64 bits.
    """
    value = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 64:
                raise IndexError
            return value >> 1 ^ -(value & 1), pos
        shift += 7
        if shift > 63:
            raise IndexError
