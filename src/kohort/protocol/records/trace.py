"""Traces record batches with a label for each byte, for the inspector.

It is slow, with a Python object for each record; `columns` is for data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.primitives import Buffer
from kohort.protocol.records.batch import HEADER_SIZE, BatchHeader, Compression, read_header
from kohort.protocol.records.compression import decompress
from kohort.protocol.trace import Span

__all__ = ["TracedBatch", "TracedRecord", "header_spans", "trace_batch"]

_HEADER_FIELDS: Final = [
    ("BaseOffset", "q", "int64"),
    ("BatchLength", "i", "int32"),
    ("PartitionLeaderEpoch", "i", "int32"),
    ("Magic", "b", "int8"),
    ("Crc", "I", "uint32"),
    ("Attributes", "h", "int16"),
    ("LastOffsetDelta", "i", "int32"),
    ("BaseTimestamp", "q", "int64"),
    ("MaxTimestamp", "q", "int64"),
    ("ProducerId", "q", "int64"),
    ("ProducerEpoch", "h", "int16"),
    ("BaseSequence", "i", "int32"),
    ("RecordCount", "i", "int32"),
]


@dataclass(frozen=True, slots=True)
class TracedRecord:
    """A record: offset, timestamp (ms since 1970), key, value (None for null), headers as (name, value)."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class TracedBatch:
    """A batch with its records.

    Attributes:
        header: the batch's header.
        spans: spans of the batch, from its start; compressed records are one span.
        records: the records.
        payload: the decompressed records' bytes.
        payload_spans: spans of the payload; empty without compression, as `spans` has them.
    """

    header: BatchHeader
    spans: list[Span]
    records: list[TracedRecord]
    payload: bytes
    payload_spans: list[Span]


def trace_batch(data: Buffer, position: int, limit: int, *, label: bool = True) -> TracedBatch:
    """Traces the batch at `position`; its records may decompress to `limit` bytes.

    Without `label` there are no spans, which take many times the memory of the records.

    Raises:
        CorruptRecordError: it is incomplete, doesn't decompress, or a record is malformed.
    """
    header = read_header(data, position)
    if header.end > len(data):
        left = len(data) - position
        raise CorruptRecordError(header.base_offset, position, f"batch of {header.size} bytes, {left} left")
    spans = header_spans(header)
    raw = bytes(memoryview(data)[position + HEADER_SIZE : header.end])
    if header.compression > Compression.ZSTD:
        raise CorruptRecordError(header.base_offset, position, f"unknown compression {header.compression}")
    codec = Compression(header.compression)
    try:
        payload = bytes(decompress(codec, raw, limit))
        reader = _RecordReader(header, payload, label)
        records = list(reader.records())
    except ValueError as error:
        raise CorruptRecordError(header.base_offset, position, str(error)) from None
    if codec is Compression.NONE:
        spans += [
            Span(span.start + HEADER_SIZE, span.end + HEADER_SIZE, span.path, span.role, span.type, span.value)
            for span in reader.spans
        ]
        return TracedBatch(header, spans, records, payload, [])
    spans.append(Span(HEADER_SIZE, header.size, "Records", "value", codec.name.lower(), raw))
    return TracedBatch(header, spans, records, payload, reader.spans)


def header_spans(header: BatchHeader) -> list[Span]:
    """The spans of a batch's header, from its start."""
    spans = []
    at = 0
    for (name, code, kind), value in zip(_HEADER_FIELDS, header[:-1], strict=True):
        size = struct.calcsize(f">{code}")
        spans.append(Span(at, at + size, name, "value", kind, value))
        at += size
    return spans


class _RecordReader:
    """A position in a batch's records. Faults are `ValueError`."""

    def __init__(self, header: BatchHeader, data: bytes, label: bool) -> None:
        self.header = header
        self.data = data
        self.label = label
        self.last_delta = -1
        self.pos = 0
        self.path = ""
        self.spans: list[Span] = []

    def records(self) -> Iterator[TracedRecord]:
        for index in range(self.header.record_count):
            self.path = f"Records[{index}]"
            yield self.record()
        if self.pos < len(self.data):
            raise ValueError(f"{len(self.data) - self.pos} bytes are left over after the last record")

    def record(self) -> TracedRecord:
        length = self.varint("Length")
        end = self.pos + length
        if length < 0 or end > len(self.data):
            raise ValueError(f"{self.path}: {length} bytes announced, {len(self.data) - self.pos} left")
        self.take(1, "Attributes", "int8")
        timestamp = _int64(self.header.base_timestamp + self.varint("TimestampDelta"))
        delta = self.varint("OffsetDelta")
        if not self.last_delta < delta <= self.header.last_offset_delta:
            raise ValueError(f"{self.path}: offset delta {delta} is outside its batch or out of order")
        self.last_delta = delta
        offset = _int64(self.header.base_offset + delta)
        key = self.blob("Key")
        value = self.blob("Value")
        headers = []
        count = self.varint("HeaderCount")
        if count < 0:
            raise ValueError(f"{self.path}: {count} headers")
        for index in range(count):
            name = self.blob(f"Headers[{index}].Key")
            if name is None:
                raise ValueError(f"{self.path}: header {index} has no name")
            headers.append((name.decode(), self.blob(f"Headers[{index}].Value")))
        if self.pos != end:
            raise ValueError(f"{self.path}: {length} bytes announced, {self.pos - end + length} read")
        if self.header.log_append_time:
            timestamp = self.header.max_timestamp
        return TracedRecord(offset, timestamp, key, value, tuple(headers))

    def span(self, start: int, name: str, role: str, kind: str, value: Any) -> None:
        if self.label:
            self.spans.append(Span(start, self.pos, f"{self.path}.{name}", role, kind, value))

    def varint(self, name: str, role: str = "value") -> int:
        start = self.pos
        value = shift = 0
        while True:
            if self.pos >= len(self.data) or shift > 63:
                raise ValueError(f"{self.path}.{name}: a varint that doesn't end")
            byte = self.data[self.pos]
            if shift == 63 and byte > 1:
                raise ValueError(f"{self.path}.{name}: a varint of more than 64 bits")
            self.pos += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        signed = (value >> 1) ^ -(value & 1)
        self.span(start, name, role, "varint", signed)
        return signed

    def blob(self, name: str) -> bytes | None:
        length = self.varint(name, "length")
        return None if length == -1 else self.take(length, name, "bytes")

    def take(self, size: int, name: str, kind: str) -> bytes:
        if not 0 <= size <= len(self.data) - self.pos:
            raise ValueError(f"{self.path}.{name}: {size} bytes announced, {len(self.data) - self.pos} left")
        start = self.pos
        self.pos += size
        raw = self.data[start : self.pos]
        if size:
            self.span(start, name, "value", kind, raw if kind == "bytes" else raw[0])
        return raw


def _int64(value: int) -> int:
    """`value` wrapped to a signed 64-bit number."""
    return (value + 2**63) % 2**64 - 2**63
