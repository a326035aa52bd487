"""Validates batches before they are appended, as Kafka's broker does.

Records are parsed only for compacted topics, where each needs a key. Kafka parses all of them; here a wrong count of
records is found when they are read. A batch that recovery would truncate as damaged is never appended: everything
acknowledged after it would be lost.
"""

from __future__ import annotations

import struct
from typing import Final

from kohort.log.config import LogConfig
from kohort.log.records import rebuilt, records_of
from kohort.log.types import Origin
from kohort.protocol.crc32c import crc32c
from kohort.protocol.errors import CorruptRecordError, ErrorCode, KafkaError
from kohort.protocol.records.batch import (
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    MIN_RECORD_SIZE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    Compression,
    read_header,
)  # fmt: skip
from kohort.protocol.records.rows import MAX_EXPANDED, payload_of

_CRC_FROM: Final = 21
_LOG_APPEND_TIME: Final = 0x08
_CONTROL: Final = 0x20
_CODEC: Final = 0x07

_STAMP: Final = struct.Struct(">Ihiqq")
"""Header fields: checksum, attributes, last offset delta, base and maximum timestamp."""
_STAMP_AT: Final = 17


def check_batch(data: memoryview, config: LogConfig, origin: Origin, now: int) -> BatchHeader:
    """Validates the one batch in `data`, and returns its header.

    Raises:
        KafkaError: CORRUPT_MESSAGE, INVALID_RECORD, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP or
            UNSUPPORTED_COMPRESSION_TYPE, with the reason.
    """
    try:
        header = read_header(data)
    except CorruptRecordError as error:
        if not data:
            raise KafkaError(ErrorCode.INVALID_RECORD, "no batch at all") from None
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if header.magic != MAGIC:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"magic {header.magic}; batches have {MAGIC} since Kafka 0.11")
    size = header.batch_length + LENGTH_END
    if size != len(data):
        if HEADER_SIZE <= size < len(data):
            raise KafkaError(
                ErrorCode.INVALID_RECORD, f"more than one batch: the first has {size} of {len(data)} bytes"
            )
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a batch of {size} bytes in {len(data)}")
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
        _check_client(header, config, now)
    if config.compact:
        _check_keys(data, header)
    return header


def _check_room(header: BatchHeader, payload: int) -> None:
    """Raises INVALID_RECORD if the payload is too small for the header's number of records."""
    room = MAX_EXPANDED if header.compression else payload
    if header.record_count * MIN_RECORD_SIZE > room or not payload:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{header.record_count} records don't fit into {payload} bytes")


def _check_client(header: BatchHeader, config: LogConfig, now: int) -> None:
    attributes = header.attributes
    if attributes & _CONTROL:
        raise KafkaError(ErrorCode.INVALID_RECORD, "clients don't write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"sequence {header.base_sequence} of producer {header.producer_id}")
    if attributes & _LOG_APPEND_TIME:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "clients don't write LogAppendTime")
    if not config.log_append_time:
        earliest, latest = now - config.message_timestamp_before_max_ms, now + config.message_timestamp_after_max_ms
        for timestamp in (header.base_timestamp, header.max_timestamp):
            if not earliest <= timestamp <= latest and timestamp != NO_TIMESTAMP:
                reason = f"timestamp {timestamp}; it must be from {earliest} to {latest}"
                raise KafkaError(ErrorCode.INVALID_TIMESTAMP, reason)


def _check_keys(data: memoryview, header: BatchHeader) -> None:
    try:
        for number, record in enumerate(records_of(payload_of(data, header), header)):
            if record.key is None:
                raise KafkaError(ErrorCode.INVALID_RECORD, f"record {number} has no key; a compacted topic needs one")
            if record.offset_delta != number:
                raise KafkaError(ErrorCode.INVALID_RECORD, f"record {number} has offset delta {record.offset_delta}")
    except CorruptRecordError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, error.reason) from None


def recompressed(data: memoryview, header: BatchHeader, config: LogConfig, codec: Compression) -> memoryview:
    """Returns the batch compressed with the topic's codec.

    Raises:
        KafkaError: INVALID_RECORD if the records don't decompress, or are too many; MESSAGE_TOO_LARGE if the result is
            too large.
    """
    try:
        batch = rebuilt(header, payload_of(data, header), header.record_count, codec, config.compression_level)
    except CorruptRecordError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, error.reason) from None
    if len(batch) > config.max_message_bytes:
        reason = f"{len(batch)} bytes as {codec.name.lower()}; max.message.bytes is {config.max_message_bytes}"
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, reason)
    _check_room(read_header(batch), len(batch) - HEADER_SIZE)
    return memoryview(batch)


def stamped(data: memoryview, header: BatchHeader, now: int) -> bytes:
    """Returns the header's bytes with `now` as the timestamp of all records (LogAppendTime)."""
    head = bytearray(data[:HEADER_SIZE])
    attributes = header.attributes | _LOG_APPEND_TIME
    _STAMP.pack_into(head, _STAMP_AT, 0, attributes, header.last_offset_delta, header.base_timestamp, now)
    crc = crc32c(data[HEADER_SIZE:], crc32c(head[_CRC_FROM:]))
    head[_STAMP_AT:_CRC_FROM] = crc.to_bytes(4, "big")
    return bytes(head)
