"""The pieces that compiled codecs are made of: varints, tables of packers by length, ids, raw tagged fields.

Compiled codecs (see `codec`) call these by name. They raise plain exceptions on bad input; the codec then asks
`trace` where the fault lies.
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
"""Kafka's unsigned varints carry 32 bits, in five bytes at most."""

MAX_STRING: Final = 32_767
"""Bytes of the longest string. Compact strings could say more, but Kafka refuses them."""

_CACHED_LENGTHS: Final = 1024
"""Packers for arrays up to this long are kept; longer ones are made when needed."""

_CACHED_UUIDS: Final = 65_536


def uvarint(value: int) -> bytes:
    """`value` as an unsigned varint: seven bits a byte, the low ones first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(data: bytes, pos: int) -> tuple[int, int]:
    """The unsigned varint at `pos`, and the position after it."""
    first = data[pos]
    return (first, pos + 1) if first < 128 else long_uvarint(data, first, pos + 1)


def long_uvarint(data: bytes, first: int, pos: int) -> tuple[int, int]:
    """An unsigned varint whose first byte was already read, and the position after it; `pos` is its second byte.

    A value of 0 is refused. Compiled codecs come here with whatever isn't a plain length from 1 to 127: a `first` of 0
    stands for null where null isn't allowed, and nobody writes 0 in several bytes in good faith.
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
    """Unsigned varints by value, up to `most`: the small ones kept, the others made when asked for."""

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
    """Ids by their bytes. Topic ids come again and again, and making a `UUID` costs ten times this look-up."""

    def __missing__(self, raw: bytes) -> uuid.UUID:
        if len(self) >= _CACHED_UUIDS:
            self.clear()
        made = self[raw] = uuid.UUID(bytes=raw)
        return made


@cache
def unpackers(code: str) -> UnpackerTable:
    """The table for an element format, shared by all codecs."""
    return UnpackerTable(code)


@cache
def packers(code: str) -> PackerTable:
    """The table for an element format, shared by all codecs."""
    return PackerTable(code)


LENGTHS: Final = UvarintTable(MAX_UVARINT)
"""Compact lengths: each one more than the length that it stands for."""

STRING_LENGTHS: Final = UvarintTable(MAX_STRING + 1)
"""The same for strings, which are never longer than in the classic form."""

BOOLEANS: Final = {False: 0, True: 1}
"""The byte of a truth value; None or a string, which Python would take for one, aren't here."""

UUIDS: Final = UuidTable()


def as_bytes(value: Buffer) -> bytes | memoryview:
    """A blob's bytes, whatever buffer holds them: arrays of wider items and buffers with gaps, too."""
    view = memoryview(value)
    return view.cast("B") if view.c_contiguous else view.tobytes()


def check_array(value: Any) -> None:
    """Refuse what has a length and can be iterated, but isn't meant as an array; lists and tuples never come here."""
    if isinstance(value, (str, bytes, bytearray, Mapping, Set)):
        raise TypeError("a list or tuple wanted")


def write_tags(tags: dict[int, bytes]) -> bytes:
    """A tagged-fields section: the number of fields, then tag, size and bytes of each, by ascending tag."""
    if not isinstance(tags, dict):
        raise TypeError("unknown_tags must be a dict")
    out = [uvarint(len(tags))]
    for tag in sorted(tags):
        if not 0 <= tag <= MAX_UVARINT:
            raise ValueError("tag out of range")
        value = as_bytes(tags[tag])
        out += (uvarint(tag), uvarint(len(value)), bytes(value))
    return b"".join(out)
