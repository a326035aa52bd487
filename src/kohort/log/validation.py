"""Validates batches before they are appended, as Kafka's broker does: the header, and of clients every record.

A batch that recovery would truncate as damaged is never appended: everything acknowledged after it would be lost. Nor
is one whose records aren't what its header says: no reader could get past it.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from typing import Any, Final, NamedTuple

from kohort.log.config import LogConfig
from kohort.log.expand import Expand, expand_now
from kohort.log.record_checks import MAX_NAMED, InvalidRecordsError, RecordError, TimestampRange, check_records
from kohort.log.records import rebuilt
from kohort.log.slices import in_one_go
from kohort.log.types import Origin
from kohort.protocol.crc32c import crc32c
from kohort.protocol.errors import CorruptRecordError, ErrorCode, KafkaError
from kohort.protocol.primitives import Buffer
from kohort.protocol.records.batch import (
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    MAGIC_AT,
    MIN_RECORD_SIZE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    Compression,
    read_header,
    write_header,
)  # fmt: skip
from kohort.protocol.records.rows import MAX_EXPANDED

_CRC_FROM: Final = 21
_LOG_APPEND_TIME: Final = 0x08
_CONTROL: Final = 0x20
_CODEC: Final = 0x07
_MOST: Final = 2**63 - 1

_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
_LEAST_LENGTH: Final = 14
"""That of a message in the oldest format."""

_STAMP: Final = struct.Struct(">Ihiqq")
"""Header fields: checksum, attributes, last offset delta, base and maximum timestamp."""
_STAMP_AT: Final = 17


class CheckedBatch(NamedTuple):
    """A batch that may be appended, in the topic's codec."""

    data: memoryview
    header: BatchHeader


def check_at_once(records: Buffer, config: LogConfig, origin: Origin, now: int) -> CheckedBatch:
    """Validates the one batch in `records`; a coordinator's without its records.

    Raises:
        KafkaError: as `check_in_slices`.
    """
    return in_one_go(check_in_slices(records, config, origin, now))


def check_in_slices(
    records: Buffer, config: LogConfig, origin: Origin, now: int, expand: Expand = expand_now
) -> Generator[Any, None, CheckedBatch]:
    """Validates the one batch in `records`; yields after some hundred microseconds, and what `expand` yields.

    Raises:
        KafkaError: CORRUPT_MESSAGE, INVALID_RECORD, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP or
            UNSUPPORTED_COMPRESSION_TYPE, with the reason; `InvalidRecordsError` for records.
    """
    data = memoryview(records)
    header = check_header(data, config, origin)
    codec = config.codec
    convert = codec is not None and header.compression != codec
    if origin is Origin.COORDINATOR and not convert:
        return CheckedBatch(data, header)
    try:
        payload = yield from expand(data, header)
    except CorruptRecordError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, error.reason) from None
    if origin is Origin.CLIENT:
        timestamps = None if config.log_append_time else _timestamps(config, now)
        latest = yield from check_records(payload, header, keyed=config.compact, timestamps=timestamps)
        if latest != header.max_timestamp and not config.log_append_time:
            # As in Kafka: look-ups by time rely on it.
            header = header._replace(max_timestamp=latest)
            if not convert:
                return _with_header(data, header)
    return _converted(header, payload, config) if convert else CheckedBatch(data, header)


def check_header(data: memoryview, config: LogConfig, origin: Origin) -> BatchHeader:
    """Validates the one batch in `data` but for its records, and returns its header.

    Raises:
        KafkaError: CORRUPT_MESSAGE, INVALID_RECORD, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP or
            UNSUPPORTED_COMPRESSION_TYPE, with the reason.
    """
    header = sent_header(data)
    size = header.batch_length + LENGTH_END
    if size != len(data):
        raise KafkaError(ErrorCode.INVALID_RECORD, f"more than one batch: the first has {size} of {len(data)} bytes")
    if size > config.max_message_bytes:
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"{size} bytes; max.message.bytes is {config.max_message_bytes}")
    if crc32c(data[_CRC_FROM:]) != header.crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the checksum is wrong")
    if header.attributes & _CODEC > Compression.ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"codec {header.attributes & _CODEC}")
    count = header.record_count
    if count <= 0 or header.last_offset_delta != count - 1:
        reason = f"{count} records, but the last offset delta is {header.last_offset_delta}"
        raise KafkaError(ErrorCode.INVALID_RECORD, reason)
    _check_room(header, size - HEADER_SIZE)
    if header.base_offset:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"base offset {header.base_offset} where 0 is expected")
    if header.producer_id < 0:
        # The sequence is ignored then: aiokafka sends 0.
        if (
            header.transactional
            or header.producer_id != NO_PRODUCER_ID
            or header.producer_epoch < NO_PRODUCER_EPOCH
            or header.base_sequence < NO_SEQUENCE
        ):
            who = f"producer id {header.producer_id}, epoch {header.producer_epoch}, sequence {header.base_sequence}"
            raise KafkaError(ErrorCode.INVALID_RECORD, f"{who}, attributes {header.attributes}")
    elif header.producer_epoch < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"producer epoch {header.producer_epoch}")
    if origin is Origin.CLIENT:
        _check_client(header)
    return header


def sent_header(records: Buffer) -> BatchHeader:
    """Reads the header of what should be a batch.

    Raises:
        KafkaError: as Kafka's reader of batches: INVALID_RECORD if there is no whole one, or one in an older format;
            CORRUPT_MESSAGE if its length or magic can't be.
    """
    try:
        header = read_header(records)
        if header.magic == MAGIC and HEADER_SIZE <= header.batch_length + LENGTH_END <= len(records):
            return header
    except CorruptRecordError:
        pass
    if len(records) <= MAGIC_AT:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{len(records)} bytes are no batch")
    (length,), magic = _LENGTH.unpack_from(records, _LENGTH_AT), records[MAGIC_AT]
    if length < _LEAST_LENGTH or magic > MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a batch of length {length}, with magic {magic}")
    if magic != MAGIC:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"magic {magic}; batches have {MAGIC} since Kafka 0.11")
    size = length + LENGTH_END
    code = ErrorCode.INVALID_RECORD if size > len(records) else ErrorCode.CORRUPT_MESSAGE
    raise KafkaError(code, f"a batch of {size} bytes in {len(records)}")


def _check_room(header: BatchHeader, payload: int) -> None:
    """Raises INVALID_RECORD if the payload is too small for the header's number of records."""
    room = MAX_EXPANDED if header.compression else payload
    if header.record_count * MIN_RECORD_SIZE > room or not payload:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{header.record_count} records don't fit into {payload} bytes")


def _check_client(header: BatchHeader) -> None:
    attributes = header.attributes
    if attributes & _CONTROL:
        raise KafkaError(ErrorCode.INVALID_RECORD, "clients don't write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"sequence {header.base_sequence} of producer {header.producer_id}")
    if attributes & _LOG_APPEND_TIME:
        named = range(min(header.record_count, MAX_NAMED))
        errors = [RecordError(index, "clients don't write LogAppendTime") for index in named]
        raise InvalidRecordsError(ErrorCode.INVALID_TIMESTAMP, errors)


def _timestamps(config: LogConfig, now: int) -> TimestampRange:
    """What records may have; never more than fits into a header."""
    earliest, latest = now - config.message_timestamp_before_max_ms, now + config.message_timestamp_after_max_ms
    return TimestampRange(max(earliest, -_MOST), min(latest, _MOST))


def _with_header(data: memoryview, header: BatchHeader) -> CheckedBatch:
    batch = bytearray(data)
    write_header(batch, header)
    return CheckedBatch(memoryview(batch), read_header(batch))


def _converted(header: BatchHeader, payload: bytes, config: LogConfig) -> CheckedBatch:
    """Returns the batch compressed with the topic's codec.

    Raises:
        KafkaError: INVALID_RECORD if the records are too many; MESSAGE_TOO_LARGE if the result is too large.
    """
    codec = config.codec
    assert codec is not None
    batch = rebuilt(header, payload, header.record_count, codec, config.compression_level)
    if len(batch) > config.max_message_bytes:
        reason = f"{len(batch)} bytes as {codec.name.lower()}; max.message.bytes is {config.max_message_bytes}"
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, reason)
    converted = read_header(batch)
    _check_room(converted, len(batch) - HEADER_SIZE)
    return CheckedBatch(memoryview(batch), converted)


def stamped(data: memoryview, header: BatchHeader, now: int) -> bytes:
    """Returns the header's bytes with `now` as the timestamp of all records (LogAppendTime)."""
    head = bytearray(data[:HEADER_SIZE])
    attributes = header.attributes | _LOG_APPEND_TIME
    _STAMP.pack_into(head, _STAMP_AT, 0, attributes, header.last_offset_delta, header.base_timestamp, now)
    crc = crc32c(data[HEADER_SIZE:], crc32c(head[_CRC_FROM:]))
    head[_STAMP_AT:_CRC_FROM] = crc.to_bytes(4, "big")
    return bytes(head)
