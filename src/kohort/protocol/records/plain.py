"""Encodes and decodes records one by one, for the logs of coordinators and of the metadata.

It needs neither numba nor pyarrow, so that servers start quickly. `columns` is for data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.primitives import Buffer
from kohort.protocol.records.batch import (
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    Compression,
    write_header,
)  # fmt: skip
from kohort.protocol.records.varint import read_varint, varint

__all__ = ["MAX_EXPANDED", "PlainRecord", "encode_records", "payload_of", "read_records"]

MAX_EXPANDED: Final = 128 * 1024 * 1024
"""Bytes that a compressed batch may decompress to."""

_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_NULL: Final = b"\x01"


class PlainRecord(NamedTuple):
    """A record: its offset, its timestamp (ms since 1970), key and value (None for null), without headers."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def encode_records(
    records: Iterable[tuple[bytes | None, bytes | None]],
    timestamp: int,
    *,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """Encodes (key, value) pairs as one uncompressed batch, with base offset 0 and one timestamp (ms since 1970)."""
    body = bytearray()
    count = 0
    for key, value in records:
        record = b"".join((b"\0\0", varint(count), *_nullable(key), *_nullable(value), b"\0"))
        body += varint(len(record))
        body += record
        count += 1
    size = HEADER_SIZE + len(body)
    batch = bytearray(HEADER_SIZE)
    batch += body
    header = BatchHeader(
        base_offset=0,
        batch_length=size - LENGTH_END,
        partition_leader_epoch=0,
        magic=MAGIC,
        crc=0,
        attributes=(_TRANSACTIONAL if transactional else 0) | (_CONTROL if control else 0),
        last_offset_delta=count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE,
        record_count=count,
        position=0,
    )
    write_header(batch, header)
    return batch


def payload_of(data: Buffer, header: BatchHeader) -> bytes:
    """Returns the decompressed records of the batch that `header` was read from.

    Raises:
        CorruptRecordError: they don't decompress, or to more than `MAX_EXPANDED` bytes.
    """
    payload = bytes(memoryview(data)[header.position + HEADER_SIZE : header.end])
    if header.compression and header.record_count:
        from kohort.protocol.records.compression import CompressionError, decompress

        try:
            return bytes(decompress(Compression(header.compression), payload, MAX_EXPANDED))
        except CompressionError as error:
            raise CorruptRecordError(header.base_offset, header.position, str(error)) from None
    return payload


def read_records(data: Buffer, header: BatchHeader) -> list[PlainRecord]:
    """Decodes the records of the batch that `header` was read from.

    Raises:
        CorruptRecordError: a record is malformed.
    """
    payload = payload_of(data, header)
    out = []
    pos = 0
    try:
        for _ in range(header.record_count):
            length, pos = read_varint(payload, pos)
            end = pos + length
            delta, pos = read_varint(payload, pos + 1)  # after the attributes, which are unused
            offset_delta, pos = read_varint(payload, pos)
            key, pos = _read_nullable(payload, pos)
            value, pos = _read_nullable(payload, pos)
            if length < 0 or not pos <= end <= len(payload):
                raise IndexError
            timestamp = header.max_timestamp if header.log_append_time else header.base_timestamp + delta
            out.append(PlainRecord(header.base_offset + offset_delta, timestamp, key, value))
            pos = end
    except IndexError:
        reason = f"record {len(out)} of {header.record_count} doesn't end within the batch"
        raise CorruptRecordError(header.base_offset, header.position, reason) from None
    return out


def _nullable(value: bytes | None) -> tuple[bytes, bytes]:
    return (_NULL, b"") if value is None else (varint(len(value)), value)


def _read_nullable(data: bytes, pos: int) -> tuple[bytes | None, int]:
    length, pos = read_varint(data, pos)
    if length < 0:
        return None, pos
    end = pos + length
    if end > len(data):
        raise IndexError
    return data[pos:end], end
