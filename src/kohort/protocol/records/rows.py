"""Encodes and decodes records one by one: small batches, the logs of coordinators and of the metadata.

    batch = encode_rows([1_700_000_000_000], [b"key"], [b"value"], [[("trace", b"7")]])
    rows = decode_rows(batch, check_batch(batch))
    rows.values  # [b"value"]

`encode_rows` and `decode_rows` have records as parallel lists; `encode_records` and `read_records` do the same for
records that have no headers, a tuple each. They take a microsecond or two a record, and need neither numba nor pyarrow;
`columns` is many times as fast for batches of more than a few hundred records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
)
from kohort.protocol.records.varint import read_varint, varint

__all__ = [
    "MAX_EXPANDED", "ExpandsFurtherError", "Headers", "PlainRecord", "Rows", "decode_rows", "encode_records",
    "encode_rows", "payload_of", "read_records", "row_size",
]  # fmt: skip

MAX_EXPANDED: Final = 128 * 1024 * 1024
"""Bytes that a compressed batch may decompress to."""

Headers = Sequence[tuple[str, bytes | None]]

_NULL: Final = b"\x01"
_SHORT_VARINTS: Final = (*(byte >> 1 ^ -(byte & 1) for byte in range(128)), *(None,) * 128)
"""The value of a one-byte varint by its byte; None for the first byte of a longer one."""

_NO_ATTRIBUTES: Final = b"\0"
_MAX_ROW_OVERHEAD: Final = 5 + 1 + 10 + 5 + 5 + 5 + 5
"""Length, attributes, both deltas, the lengths of key and value, the number of headers: the longest of each."""


class Rows(NamedTuple):
    """Records as lists of equal length.

    Attributes:
        offsets: ascending.
        timestamps: ms since 1970; -1 for none.
        keys, values: bytes, or None for null.
        headers: names and values, in order; a separate list for each record.
    """

    offsets: list[int]
    timestamps: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[list[tuple[str, bytes | None]]]


class PlainRecord(NamedTuple):
    """A record: its offset, its timestamp (ms since 1970), key and value (None for null), without headers."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def row_size(key: bytes | None, value: bytes | None, headers: Headers = ()) -> int:
    """The most bytes that a record may take in a batch, before compression."""
    size = _MAX_ROW_OVERHEAD + len(key or b"") + len(value or b"")
    for name, content in headers:
        # A character takes at most four bytes.
        size += 10 + (len(name) if name.isascii() else 4 * len(name)) + len(content or b"")
    return size


def encode_rows(
    timestamps: Sequence[int],
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    headers: Sequence[Headers] | None = None,
    *,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """Encodes one batch of at least one record; the sequences have equal lengths.

    Args:
        timestamps: ms since 1970.
        keys, values: bytes, or None for null.
        headers: of each record; None if no record has any.
        compression, level: of the records.
        base_offset, leader_epoch, producer_id, producer_epoch, base_sequence, transactional, control: for the batch's
            header.

    Raises:
        ValueError: there is no record, or the sequences differ in length.
    """
    count = len(timestamps)
    if not count:
        raise ValueError("a batch needs a record")
    base_timestamp = timestamps[0]
    pieces: list[Buffer] = []
    for delta, (timestamp, key, value, named) in enumerate(
        zip(timestamps, keys, values, headers if headers is not None else ((),) * count, strict=True)
    ):
        record = b"".join(
            (
                _NO_ATTRIBUTES,
                varint(timestamp - base_timestamp),
                varint(delta),
                _NULL if key is None else varint(len(key)) + key,
                _NULL if value is None else varint(len(value)) + value,
                _headers(named) if named else b"\0",
            )
        )
        pieces.append(varint(len(record)))
        pieces.append(record)
    if compression:
        from kohort.protocol.records.compression import compress

        pieces = [compress(compression, b"".join(pieces), level)]
    batch = bytearray(HEADER_SIZE)
    batch += b"".join(pieces)
    header = BatchHeader(  # by position, in the order of the bytes: keywords take a microsecond more
        base_offset, len(batch) - LENGTH_END, leader_epoch, MAGIC, 0, compression | transactional << 4 | control << 5,
        count - 1, base_timestamp, max(timestamps), producer_id, producer_epoch, base_sequence, count, 0,
    )  # fmt: skip
    write_header(batch, header)
    return batch


def encode_records(
    records: Iterable[tuple[bytes | None, bytes | None]],
    timestamp: int,
    *,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """Encodes (key, value) pairs as one uncompressed batch, with base offset 0 and one timestamp (ms since 1970).

    Raises:
        ValueError: there is no pair.
    """
    keys, values = [], []
    for key, value in records:
        keys.append(key)
        values.append(value)
    return encode_rows(
        [timestamp] * len(keys), keys, values,
        leader_epoch=0, producer_id=producer_id, producer_epoch=producer_epoch, transactional=transactional,
        control=control,
    )  # fmt: skip


def _headers(headers: Headers) -> bytes:
    parts = [varint(len(headers))]
    for name, value in headers:
        encoded = name.encode()
        parts += (varint(len(encoded)), encoded)
        parts.append(_NULL if value is None else varint(len(value)) + value)
    return b"".join(parts)


class ExpandsFurtherError(Exception):
    """A batch expands to more than was asked for."""


def payload_of(data: Buffer, header: BatchHeader, limit: int = MAX_EXPANDED) -> bytes:
    """Returns the decompressed records of the batch that `header` was read from.

    Raises:
        CorruptRecordError: they don't decompress, or to more than `MAX_EXPANDED` bytes.
        ExpandsFurtherError: to more than a lower `limit`.
    """
    payload = bytes(memoryview(data)[header.position + HEADER_SIZE : header.end])
    if header.compression and header.record_count:
        from kohort.protocol.records.compression import CompressionError, ExpansionError, decompress

        try:
            return bytes(decompress(Compression(header.compression), payload, limit))
        except ExpansionError as error:
            if limit < MAX_EXPANDED:
                raise ExpandsFurtherError from None
            raise CorruptRecordError(header.base_offset, header.position, str(error)) from None
        except CompressionError as error:
            raise CorruptRecordError(header.base_offset, header.position, str(error)) from None
    return payload


def decode_rows(data: Buffer, header: BatchHeader) -> Rows:
    """Decodes the records of the batch that `header` was read from.

    Raises:
        CorruptRecordError: it doesn't decompress, a record is malformed, or its offset is out of order or not the
            batch's.
    """
    payload = payload_of(data, header)
    rows = Rows([], [], [], [], [])
    offsets, timestamps, keys, values, all_headers = rows
    base_offset, base_timestamp, last_delta = header.base_offset, header.base_timestamp, header.last_offset_delta
    fixed = header.max_timestamp if header.log_append_time else None
    short, long = _SHORT_VARINTS, _read_long_varint
    pos, previous, size = 0, -1, len(payload)
    try:
        for _ in range(header.record_count):
            # Its numbers, mostly of one byte; a call for each would double the time.
            if (length := short[payload[pos]]) is None:
                length, pos = long(payload, pos)
            else:
                pos += 1
            end = pos + length
            pos += 1  # attributes, unused
            if (time_delta := short[payload[pos]]) is None:
                time_delta, pos = long(payload, pos)
            else:
                pos += 1
            if (offset_delta := short[payload[pos]]) is None:
                offset_delta, pos = long(payload, pos)
            else:
                pos += 1
            if not previous < offset_delta <= last_delta:
                raise _corrupt(header, "a record's offset is outside its batch or out of order")
            previous = offset_delta
            if (length := short[payload[pos]]) is None:
                length, pos = long(payload, pos)
            else:
                pos += 1
            if length >= 0:
                key = payload[pos : (pos := pos + length)]
            elif length == -1:
                key = None
            else:
                raise IndexError
            if (length := short[payload[pos]]) is None:
                length, pos = long(payload, pos)
            else:
                pos += 1
            if length >= 0:
                value = payload[pos : (pos := pos + length)]
            elif length == -1:
                value = None
            else:
                raise IndexError
            if (number := short[payload[pos]]) is None:
                number, pos = long(payload, pos)
            else:
                pos += 1
            headers: list[tuple[str, bytes | None]] = []
            if number:
                if not 0 < number <= end - pos:
                    raise IndexError
                pos = _read_headers(payload, pos, number, headers)
            # A slice with a too large length is short, which shows here.
            if pos != end or end > size:
                raise IndexError
            offsets.append(base_offset + offset_delta)
            timestamps.append(base_timestamp + time_delta if fixed is None else fixed)
            keys.append(key)
            values.append(value)
            all_headers.append(headers)
    except IndexError:
        raise _corrupt(header, f"record {len(offsets)} of {header.record_count} doesn't add up") from None
    except UnicodeDecodeError:
        raise _corrupt(header, "the name of a header isn't UTF-8") from None
    if pos != size:
        raise _corrupt(header, "bytes are left over after the last record")
    return rows


def read_records(data: Buffer, header: BatchHeader) -> list[PlainRecord]:
    """Decodes the records of the batch that `header` was read from; their headers are left out.

    Raises:
        CorruptRecordError: as with `decode_rows`.
    """
    rows = decode_rows(data, header)
    return list(map(PlainRecord, rows.offsets, rows.timestamps, rows.keys, rows.values))


def _read_long_varint(data: bytes, pos: int) -> tuple[int, int]:
    """Like `read_varint`, but faster for numbers of two bytes."""
    high = data[pos + 1]
    if high > 127:
        return read_varint(data, pos)
    number = data[pos] & 127 | high << 7
    return number >> 1 ^ -(number & 1), pos + 2


def _read_headers(payload: bytes, pos: int, number: int, headers: list[tuple[str, bytes | None]]) -> int:
    short, long = _SHORT_VARINTS, _read_long_varint
    for _ in range(number):
        if (length := short[payload[pos]]) is None:
            length, pos = long(payload, pos)
        else:
            pos += 1
        if length < 0 or pos + length > len(payload):
            raise IndexError
        name = payload[pos : (pos := pos + length)].decode()
        if (length := short[payload[pos]]) is None:
            length, pos = long(payload, pos)
        else:
            pos += 1
        if length >= 0:
            headers.append((name, payload[pos : (pos := pos + length)]))
        elif length == -1:
            headers.append((name, None))
        else:
            raise IndexError
    return pos


def _corrupt(header: BatchHeader, reason: str) -> CorruptRecordError:
    return CorruptRecordError(header.base_offset, header.position, reason)
