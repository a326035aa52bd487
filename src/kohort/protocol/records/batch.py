"""Headers of record batches: reads, validates and patches them without parsing records.

A batch is a header of 61 bytes and its records, compressed as one block. The checksum covers everything from the
attributes on, so a broker may set base offset and leader epoch in a client's batch.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from kohort.protocol.crc32c import crc32c
from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.primitives import Buffer

__all__ = [
    "CRC_AT", "HEADER_SIZE", "LENGTH_AT", "LENGTH_END", "MAGIC", "MAGIC_AT", "NO_PRODUCER_EPOCH", "NO_PRODUCER_ID",
    "NO_SEQUENCE", "NO_TIMESTAMP", "BatchHeader", "Compression", "assign_offsets", "check_batch", "check_batches",
    "checksum", "next_sequence", "read_header", "scan_batches", "write_header",
]  # fmt: skip

HEADER_SIZE: Final = 61
MAGIC: Final = 2

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_PREFIX: Final = struct.Struct(">qi")
_OFFSET: Final = struct.Struct(">q")
_EPOCH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")

LENGTH_END: Final = _PREFIX.size
"""Where the part counted by the length starts."""

LENGTH_AT: Final = 8
_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
_CRC_FROM: Final = 21

MIN_RECORD_SIZE: Final = 7
"""Length, attributes, two deltas, null key, null value, no headers: one byte each."""

MAX_OFFSET: Final = 2**63 - 1

_MAX_INT32: Final = 2**31 - 1


class Compression(enum.IntEnum):
    """Compression of a batch's records: the lowest three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class BatchHeader(NamedTuple):
    """The header of a batch, and the batch's position in its buffer.

    Attributes:
        base_offset: offset of the first record.
        batch_length: bytes after this field; the batch is 12 bytes longer (`size`).
        partition_leader_epoch: leader epoch in which the broker appended it, -1 before.
        magic: 2.
        crc: CRC-32C of everything after it.
        attributes: bits; see the properties.
        last_offset_delta: offset of the last record, from the base offset; unchanged by compaction.
        base_timestamp, max_timestamp: ms since 1970, of the first record and the latest.
        producer_id, producer_epoch, base_sequence: of an idempotent producer, otherwise -1.
        record_count: number of records.
        position: byte offset of the batch in its buffer.
    """

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    position: int

    @property
    def size(self) -> int:
        """Bytes of the batch."""
        return self.batch_length + LENGTH_END

    @property
    def end(self) -> int:
        """Byte offset after the batch in its buffer."""
        return self.position + self.size

    @property
    def last_offset(self) -> int:
        """Offset of the last record, also if compaction has removed it."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset after the batch."""
        return self.last_offset + 1

    @property
    def compression(self) -> int:
        """A value of `Compression`, or 5 to 7, which are undefined."""
        return self.attributes & 0x07

    @property
    def log_append_time(self) -> bool:
        """Whether records have the broker's time: `max_timestamp` is the timestamp of each."""
        return bool(self.attributes & 0x08)

    @property
    def transactional(self) -> bool:
        """Whether it belongs to a transaction."""
        return bool(self.attributes & 0x10)

    @property
    def control(self) -> bool:
        """Whether it is a control batch, such as a transaction marker."""
        return bool(self.attributes & 0x20)

    @property
    def delete_horizon(self) -> int | None:
        """When compaction may remove the batch's tombstones (ms since 1970), None if it isn't set; KIP-534."""
        return self.base_timestamp if self.attributes & 0x40 else None


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    """Reads the header of the batch at `position`, without validation.

    Raises:
        CorruptRecordError: fewer than 61 bytes are left.
    """
    try:
        return BatchHeader._make((*_HEADER.unpack_from(data, position), position))
    except struct.error:
        left = max(0, len(data) - position)
        offset = _OFFSET.unpack_from(data, position)[0] if left >= _OFFSET.size else None
        raise CorruptRecordError(offset, position, f"a header of {HEADER_SIZE} bytes, {left} left") from None


def scan_batches(data: Buffer) -> Iterator[BatchHeader]:
    """Yields the headers of the batches in `data`; only magic and length are validated.

    An incomplete batch at the end is ignored, as fetch responses may end with one.

    Raises:
        CorruptRecordError: an invalid length, or another magic than 2.
    """
    position, size = 0, len(data)
    while size - position >= LENGTH_END:
        base_offset, length = _PREFIX.unpack_from(data, position)
        if length < HEADER_SIZE - LENGTH_END:
            raise CorruptRecordError(base_offset, position, f"length {length} is too small for a batch")
        end = position + LENGTH_END + length
        if size - position > MAGIC_AT and (magic := data[position + MAGIC_AT]) != MAGIC:
            raise CorruptRecordError(base_offset, position, f"magic {magic} where 2 is expected")
        if end > size:
            return
        yield read_header(data, position)
        position = end


def checksum(data: Buffer, header: BatchHeader) -> int:
    """Computes the CRC-32C of the batch that `header` was read from."""
    return crc32c(memoryview(data)[header.position + _CRC_FROM : header.end])


def check_batch(data: Buffer, position: int = 0) -> BatchHeader:
    """Validates the batch at `position`, and returns its header; records aren't parsed.

    It checks magic, length, checksum, compression, the number of records against offsets and size, and producer fields.

    Raises:
        CorruptRecordError: the batch is incomplete or invalid, with the reason.
    """
    header = read_header(data, position)

    def corrupt(reason: str) -> CorruptRecordError:
        return CorruptRecordError(header.base_offset, position, reason)

    if header.magic != MAGIC:
        raise corrupt(f"magic {header.magic} where 2 is expected")
    if header.batch_length < HEADER_SIZE - LENGTH_END:
        raise corrupt(f"length {header.batch_length} is too small for a batch")
    if header.end > len(data):
        raise corrupt(f"batch of {header.size} bytes, {len(data) - position} left")
    if (actual := checksum(data, header)) != header.crc:
        raise corrupt(f"checksum is {actual:#010x}, the header says {header.crc:#010x}")
    if header.compression > Compression.ZSTD:
        raise corrupt(f"unknown compression {header.compression}")
    if header.base_offset < 0:
        raise corrupt("negative base offset")
    if header.last_offset > MAX_OFFSET:
        raise corrupt(f"last offset {header.last_offset} is over {MAX_OFFSET}")
    if header.record_count < 0:
        raise corrupt(f"{header.record_count} records")
    # Compaction may leave fewer records than offsets, down to none, but never more.
    if not header.record_count - 1 <= header.last_offset_delta or header.last_offset_delta < 0:
        raise corrupt(f"{header.record_count} records, but the last offset delta is {header.last_offset_delta}")
    payload = header.size - HEADER_SIZE
    if header.compression == Compression.NONE and header.record_count * MIN_RECORD_SIZE > payload:
        raise corrupt(f"{header.record_count} records can't lie in {payload} bytes")
    if header.record_count and not payload:
        raise corrupt(f"{header.record_count} records, but nothing after the header")
    if header.producer_id < NO_PRODUCER_ID or header.producer_epoch < NO_PRODUCER_EPOCH:
        raise corrupt(f"producer {header.producer_id} with epoch {header.producer_epoch}")
    if header.base_sequence < NO_SEQUENCE:
        raise corrupt(f"base sequence {header.base_sequence}")
    if header.producer_id == NO_PRODUCER_ID and header.transactional:
        raise corrupt("a transaction, but no producer id")
    return header


def check_batches(data: Buffer) -> list[BatchHeader]:
    """Validates all batches in `data` with `check_batch`, and returns their headers; the last one must be complete.

    Raises:
        CorruptRecordError: a batch is incomplete or invalid.
    """
    headers = []
    position = 0
    while position < len(data):
        header = check_batch(data, position)
        headers.append(header)
        position = header.end
    return headers


def assign_offsets(data: bytearray | memoryview, header: BatchHeader, base_offset: int, leader_epoch: int) -> int:
    """Sets base offset and leader epoch of a batch, in place, and returns the offset after it.

    The checksum doesn't cover these two fields.

    Raises:
        ValueError: offsets outside 0 to 2^63 - 1.
    """
    if not 0 <= base_offset <= MAX_OFFSET - header.last_offset_delta:
        raise ValueError(f"base offset {base_offset} with {header.last_offset_delta} more is out of range")
    _OFFSET.pack_into(data, header.position, base_offset)
    _EPOCH.pack_into(data, header.position + _EPOCH_AT, leader_epoch)
    return base_offset + header.last_offset_delta + 1


def write_header(data: bytearray | memoryview, header: BatchHeader) -> None:
    """Writes `header` at its position, with the checksum of the bytes in `data`.

    Raises:
        ValueError: the batch doesn't end within `data`.
    """
    position, end = header.position, header.end
    if header.batch_length < HEADER_SIZE - LENGTH_END or end > len(data):
        raise ValueError(f"a batch of {header.size} bytes at {position} in {len(data)} bytes")
    _HEADER.pack_into(data, position, *header[:-1])
    _CRC.pack_into(data, position + CRC_AT, crc32c(memoryview(data)[position + _CRC_FROM : end]))


def next_sequence(sequence: int, count: int) -> int:
    """The sequence `count` records after `sequence`; sequences wrap after 2^31 - 1 to 0."""
    return (sequence + count) & _MAX_INT32
