"""Parses the records of a batch, as far as a log needs it: keys, tombstones, timestamps, positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.primitives import Buffer
from kohort.protocol.records.batch import (
    HEADER_SIZE,
    LENGTH_END,
    BatchHeader,
    Compression,
    write_header,
)  # fmt: skip
from kohort.protocol.records.varint import read_varint

_NO_RECORDS: Final = b""
_ZIGZAG: Final = [byte >> 1 ^ -(byte & 1) for byte in range(128)]


class ParsedRecord(NamedTuple):
    """A parsed record, with its position in the payload.

    Attributes:
        offset_delta, timestamp_delta: from the batch's base offset and base timestamp.
        key: None for null.
        tombstone: whether its value is null.
        start, body, end: its position in the payload, from its length; `body` is after the timestamp.
    """

    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    tombstone: bool
    start: int
    body: int
    end: int


_new: Final = tuple.__new__  # a third of the time of ParsedRecord()


def records_of(payload: bytes, header: BatchHeader) -> Iterator[ParsedRecord]:
    """Yields the records of a decompressed payload; a list of them could take 30 times its bytes.

    Raises:
        CorruptRecordError: they don't fill the payload.
    """
    at, size = 0, len(payload)
    try:
        for _ in range(header.record_count):
            start = at
            # Nearly every varint is one byte; function calls would take most of the time.
            if (length := payload[at]) > 127:
                length, at = read_varint(payload, at)
            else:
                length, at = _ZIGZAG[length], at + 1
            end = at + length
            if length < 0 or end > size:
                raise IndexError
            at += 1  # attributes, unused
            if (timestamp_delta := payload[at]) > 127:
                timestamp_delta, at = read_varint(payload, at)
            else:
                timestamp_delta, at = _ZIGZAG[timestamp_delta], at + 1
            body = at
            if (offset_delta := payload[at]) > 127:
                offset_delta, at = read_varint(payload, at)
            else:
                offset_delta, at = _ZIGZAG[offset_delta], at + 1
            if (key_size := payload[at]) > 127:
                key_size, at = read_varint(payload, at)
            else:
                key_size, at = _ZIGZAG[key_size], at + 1
            key = None
            if key_size >= 0:
                key = payload[at : at + key_size]
                at += key_size
            if (value_size := payload[at]) > 127:
                value_size, at = read_varint(payload, at)
            else:
                value_size, at = _ZIGZAG[value_size], at + 1
            if at + (max(0, value_size)) >= end:
                raise IndexError  # the count of headers follows
            yield _new(ParsedRecord, (offset_delta, timestamp_delta, key, value_size < 0, start, body, end))
            at = end
        if at != size:
            raise IndexError
    except IndexError:
        reason = f"{header.record_count} records don't fill its {size} bytes"
        raise CorruptRecordError(header.base_offset, header.position, reason) from None


def rebuilt(
    header: BatchHeader, payload: bytes | bytearray, count: int, codec: Compression, level: int | None
) -> bytes:
    """Returns a batch with the fields of `header`, but other records, compressed with `codec`."""
    packed: Buffer = payload if count else _NO_RECORDS
    if codec and count:
        from kohort.protocol.records.compression import compress

        packed = compress(codec, payload, level)
    batch = bytearray(HEADER_SIZE + len(packed))
    batch[HEADER_SIZE:] = packed
    attributes = header.attributes & ~0x07 | codec
    size = len(batch) - LENGTH_END
    write_header(batch, header._replace(position=0, batch_length=size, attributes=attributes, record_count=count))
    return bytes(batch)
