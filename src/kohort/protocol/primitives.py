"""The primitives of compiled codecs: varints, tables of packers by length, UUIDs, raw tagged fields.

Compiled codecs (see `codec`) call these by name. They raise plain exceptions on invalid input, and `trace` then finds
the fault.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Mapping, Set
from functools import cache
from typing import Any, Final, TypeAlias

__all__ = [
    "BOOLEANS", "LENGTHS", "MAX_STRING", "MAX_UVARINT", "STRING_LENGTHS", "UUIDS", "Buffer", "PackerTable",
    "UnpackerTable", "UvarintTable", "as_bytes", "check_array", "long_uvarint", "packers", "read_uvarint",
    "unpackers", "uvarint", "write_tags",
]  # fmt: skip

Buffer: TypeAlias = bytes | bytearray | memoryview

MAX_UVARINT: Final = 2**32 - 1
"""Kafka's unsigned varints have 32 bits, in at most five bytes."""

MAX_STRING: Final = 32_767
"""Bytes of the longest string. Compact strings could be longer, but Kafka refuses them."""

_CACHED_LENGTHS: Final = 1024
"""Packers for arrays up to this length are cached; longer ones are made on use."""

_CACHED_UUIDS: Final = 65_536


def uvarint(value: int) -> bytes:
    """Encodes an unsigned varint: seven bits a byte, the low ones first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(data: bytes, pos: int) -> tuple[int, int]:
    """Returns the unsigned varint at `pos`, and the position after it."""
    first = data[pos]
    return (first, pos + 1) if first < 128 else long_uvarint(data, first, pos + 1)


def long_uvarint(data: bytes, first: int, pos: int) -> tuple[int, int]:
    """Returns an unsigned varint whose first byte was read, and the position after it; `pos` is its second byte.

    A value of 0 is refused. Compiled codecs call this for anything but a length from 1 to 127: a `first` of 0 is null
    where null isn't allowed, and no valid encoder writes 0 in several bytes.
    """
    value = first & 127
    shift = 7
    while first > 127:
        first = data[pos]
        pos += 1
        value |= (first & 127) << shift
        shift += 7
        if shift > 35:
            raise ValueError("varint longer than five bytes")
    if not 0 < value <= MAX_UVARINT:
        raise ValueError("varint of 0 or over 32 bits")
    return value, pos


class UvarintTable(dict[int, bytes]):
    """Unsigned varints by value, up to `most`; small ones are cached."""

    def __init__(self, most: int) -> None:
        super().__init__((value, uvarint(value)) for value in range(4096))
        self.most = most

    def __missing__(self, value: int) -> bytes:
        if not 0 <= value <= self.most:
            raise ValueError(f"length {value - 1} where {self.most - 1} is the most")
        return uvarint(value)


class UnpackerTable(dict[int, Callable[[bytes, int], tuple[Any, ...]]]):
    """`struct` unpackers of arrays by their length, for one element format."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __missing__(self, length: int) -> Callable[[bytes, int], tuple[Any, ...]]:
        if length < 0:
            raise ValueError("negative array length")
        unpack = struct.Struct(f">{length}{self.code}").unpack_from
        if length < _CACHED_LENGTHS:
            self[length] = unpack
        return unpack


class PackerTable(dict[int, Callable[..., bytes]]):
    """`struct` packers of arrays by their length, for one element format."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __missing__(self, length: int) -> Callable[..., bytes]:
        pack = struct.Struct(f">{length}{self.code}").pack
        if length < _CACHED_LENGTHS:
            self[length] = pack
        return pack


class UuidTable(dict[bytes, uuid.UUID]):
    """UUIDs by their bytes. Topic ids repeat, and making a `UUID` takes ten times as long as this look-up."""

    def __missing__(self, raw: bytes) -> uuid.UUID:
        if len(self) >= _CACHED_UUIDS:
            self.clear()
        made = self[raw] = uuid.UUID(bytes=raw)
        return made


@cache
def unpackers(code: str) -> UnpackerTable:
    """Returns the table of an element format, shared by all codecs."""
    return UnpackerTable(code)


@cache
def packers(code: str) -> PackerTable:
    """Returns the table of an element format, shared by all codecs."""
    return PackerTable(code)


LENGTHS: Final = UvarintTable(MAX_UVARINT)
"""Compact lengths, encoded as the length + 1."""

STRING_LENGTHS: Final = UvarintTable(MAX_STRING + 1)
"""The same for strings, which are limited to `MAX_STRING`."""

BOOLEANS: Final = {False: 0, True: 1}
"""The byte of a boolean; other values, which Python would accept as one, are missing."""

UUIDS: Final = UuidTable()


def as_bytes(value: Buffer) -> bytes | memoryview:
    """Returns the bytes of any buffer, also of arrays with wider items and of non-contiguous ones."""
    view = memoryview(value)
    return view.cast("B") if view.c_contiguous else view.tobytes()


def check_array(value: Any) -> None:
    """Raises TypeError for iterables that aren't meant as arrays; isn't called for lists and tuples."""
    if isinstance(value, (str, bytes, bytearray, Mapping, Set)):
        raise TypeError("a list or tuple wanted")


def write_tags(tags: dict[int, bytes]) -> bytes:
    """Encodes tagged fields: their number, then tag, size and bytes of each, by ascending tag."""
    if not isinstance(tags, dict):
        raise TypeError("unknown_tags must be a dict")
    out = [uvarint(len(tags))]
    for tag in sorted(tags):
        if not 0 <= tag <= MAX_UVARINT:
            raise ValueError("tag out of range")
        value = as_bytes(tags[tag])
        out += (uvarint(tag), uvarint(len(value)), bytes(value))
    return b"".join(out)
