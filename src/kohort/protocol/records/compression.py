"""The compression codecs of record batches.

Decompression has a limit, so that a small batch can't exhaust memory. Compression writes what every client reads: LZ4
frames with independent blocks (the Java client reads no others) and snappy in the Java library's framing.
"""

from __future__ import annotations

import struct
from typing import Final

import cramjam

from kohort.protocol.primitives import Buffer
from kohort.protocol.records.batch import Compression

__all__ = ["CompressionError", "ExpansionError", "compress", "decompress"]

_XERIAL_MAGIC: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK: Final = 32 * 1024

# Magic, version 1 with independent blocks and no checksums, blocks of 64 KiB, checksum of these two bytes.
_LZ4_HEADER: Final = bytes.fromhex("04224d18604082")
_LZ4_BLOCK: Final = 64 * 1024
_LZ4_STORED: Final = 1 << 31
_LZ4_END: Final = bytes(4)

_INT32: Final = struct.Struct(">i")
_LITTLE_UINT32: Final = struct.Struct("<I")

_DECOMPRESSORS: Final = {
    Compression.GZIP: cramjam.gzip.decompress_into,
    Compression.LZ4: cramjam.lz4.decompress_into,
    Compression.ZSTD: cramjam.zstd.decompress_into,
}
_TOO_SMALL: Final = "failed to write whole buffer"
"""What Rust's standard library says, and so cramjam, where the output is larger than the buffer for it."""

_LEVELS: Final = {Compression.GZIP: range(1, 10), Compression.ZSTD: range(1, 23)}
_FIRST_BUFFER: Final = 64 * 1024


class CompressionError(ValueError):
    """The data doesn't decompress."""


class ExpansionError(CompressionError):
    """The data decompresses to more than the limit."""


def decompress(codec: Compression, data: Buffer, limit: int) -> Buffer:
    """Decompresses data, into bytes that can't be written: kernels would be compiled anew for others.

    Raises:
        CompressionError: the data is invalid.
        ExpansionError: it decompresses to more than `limit` bytes.
    """
    if codec is Compression.NONE:
        return data
    if codec is Compression.SNAPPY:
        return _decompress_snappy(bytes(data), limit)
    if not len(data):
        return b""
    # Tried in growing buffers, so that memory depends on the data, not the limit. A buffer is filled with zeros first,
    # so one that is much too large takes longer than the decompression.
    size = max(_FIRST_BUFFER, 4 * len(data))
    while (expanded := _decompress_into(codec, data, min(size, limit))) is None:
        if size >= limit:
            raise ExpansionError(f"{codec.name.lower()} expands to more than {limit} bytes")
        size *= 4
    return expanded


def _decompress_into(codec: Compression, data: Buffer, size: int) -> memoryview | None:
    """Decompresses into a buffer of so many bytes; None if that is too small."""
    buffer = bytearray(size)
    try:
        del buffer[_DECOMPRESSORS[codec](data, buffer) :]
    except cramjam.DecompressionError as error:
        if str(error) != _TOO_SMALL:
            raise CompressionError(f"{codec.name.lower()} doesn't decompress: {error}") from None
        return None
    return memoryview(buffer).toreadonly()


def _decompress_snappy(data: bytes, limit: int) -> bytes:
    """Decompresses snappy in the Java library's framing (magic, then blocks with lengths), or without framing."""
    if not data.startswith(_XERIAL_MAGIC):
        return _snappy_block(data, limit, 0)
    pieces: list[bytes] = []
    done = 0
    position = len(_XERIAL_HEADER)
    while position < len(data):
        if position + _INT32.size > len(data):
            raise CompressionError("snappy block cut off in its length")
        (size,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        if not 0 <= size <= len(data) - position:
            raise CompressionError(f"snappy block of {size} bytes, {len(data) - position} left")
        if size:
            pieces.append(_snappy_block(data[position : position + size], limit, done))
            done += len(pieces[-1])
        position += size
    return b"".join(pieces)


def _snappy_block(data: bytes, limit: int, done: int) -> bytes:
    """Decompresses one block; `done` bytes of `limit` are used up."""
    try:
        if done + cramjam.snappy.decompress_raw_len(data) > limit:
            raise ExpansionError(f"snappy expands to more than {limit} bytes")
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise CompressionError(f"snappy doesn't decompress: {error}") from None


def compress(codec: Compression, data: Buffer, level: int | None = None) -> Buffer:
    """Compresses data; `level` is the codec's (gzip 1 to 9, zstd 1 to 22; others have none).

    Raises:
        ValueError: the codec has no such level.
    """
    if level is not None and level not in _LEVELS.get(codec, ()):
        raise ValueError(f"{codec.name.lower()} has no level {level}")
    match codec:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            return memoryview(cramjam.gzip.compress(data, level=6 if level is None else level))
        case Compression.SNAPPY:
            return _compress_snappy(memoryview(data))
        case Compression.LZ4:
            return _compress_lz4(memoryview(data))
        case Compression.ZSTD:
            return memoryview(cramjam.zstd.compress(data, level=3 if level is None else level))


def _compress_snappy(data: memoryview) -> bytes:
    out = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
        out += (_INT32.pack(len(block)), block)
    return b"".join(out)


def _compress_lz4(data: memoryview) -> bytes:
    out = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK):
        block = data[start : start + _LZ4_BLOCK]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            out += (_LITTLE_UINT32.pack(len(packed)), packed)
        else:
            out += (_LITTLE_UINT32.pack(len(block) | _LZ4_STORED), bytes(block))
    out.append(_LZ4_END)
    return b"".join(out)
