"""Record batches to Arrow columns and back, with no Python object for a record.

    decoded = decode_columns(fetched)
    decoded.records.schema  # offset, timestamp, key, value, headers

    batches = encode_columns(table, compression=Compression.LZ4, producer_id=7, producer_epoch=0, base_sequence=0)

Cost is linear in bytes, plus a few microseconds a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.records import kernels
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
    Buffer,
    Compression,
    check_batch,
    next_sequence,
    scan_batches,
    write_header,
)
from kohort.protocol.records.compression import CompressionError, compress, decompress

__all__ = ["DEFAULT_LIMIT", "RECORD_SCHEMA", "DecodedRecords", "decode_columns", "encode_columns"]

HEADER_TYPE: Final = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])

RECORD_SCHEMA: Final = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("item", HEADER_TYPE, nullable=False)), nullable=False),
    ]
)
"""The columns that records are decoded into. A timestamp of -1 ms means that the record has none."""

DEFAULT_LIMIT: Final = 256 * 1024 * 1024
"""Bytes that one batch may expand to."""

_MAX_COLUMN: Final = 2**31 - 1
_OWN_TIME: Final = -2


@dataclass(frozen=True, slots=True)
class DecodedRecords:
    """What a buffer of batches holds.

    Attributes:
        records: the data, with `RECORD_SCHEMA`, in the order of the batches.
        batches: headers of the data batches.
        rows: where each data batch begins in `records`, and as a last entry where the last one ends.
        control: headers of the control batches, in order.
        control_records: their records, with `RECORD_SCHEMA`.
    """

    records: pa.RecordBatch
    batches: Sequence[BatchHeader]
    rows: Sequence[int]
    control: Sequence[BatchHeader]
    control_records: pa.RecordBatch


def decode_columns(
    data: Buffer, headers: Iterable[BatchHeader] | None = None, *, limit: int = DEFAULT_LIMIT, check: bool = True
) -> DecodedRecords:
    """The records of one or many batches as columns, control batches apart.

    Args:
        data: batches, one after another; one cut off at the end is passed over.
        headers: which batches of `data` to decode, as `scan_batches` gave them; all unless given.
        limit: bytes that a batch may expand to.
        check: verify checksum and header of each batch; leave it out only for batches that were checked before.

    Raises:
        CorruptRecordError: a batch doesn't add up, doesn't decompress or expands beyond the limit.
    """
    plain: list[BatchHeader] = []
    control: list[BatchHeader] = []
    for header in scan_batches(data) if headers is None else headers:
        if check:
            check_batch(data, header.position)
        (control if header.control else plain).append(header)
    records, rows = _decode(data, plain, limit)
    control_records, _ = _decode(data, control, limit)
    return DecodedRecords(records, plain, rows, control, control_records)


def _decode(data: Buffer, headers: list[BatchHeader], limit: int) -> tuple[pa.RecordBatch, list[int]]:
    payload, starts, ends = _payloads(data, headers, limit)
    counts = _longs(header.record_count for header in headers)
    total = int(counts.sum())
    rows = [0, *np.cumsum(counts).tolist()]
    room = int((ends - starts).sum())
    offsets, timestamps = np.empty(total, np.int64), np.empty(total, np.int64)
    key_ends, value_ends, header_ends = (np.zeros(total + 1, np.int32) for _ in range(3))
    keys, values = np.empty(room, np.uint8), np.empty(room, np.uint8)
    key_valid, value_valid = np.empty(total, np.bool_), np.empty(total, np.bool_)
    header_at = np.empty(total, np.int64)
    fault, batch, _ = kernels.decode_records(
        payload,
        starts,
        ends,
        counts,
        _longs(header.base_offset for header in headers),
        _longs(header.last_offset_delta for header in headers),
        _longs(header.base_timestamp for header in headers),
        _longs(header.max_timestamp if header.log_append_time else _OWN_TIME for header in headers),
        offsets,
        timestamps,
        key_ends,
        keys,
        key_valid,
        value_ends,
        values,
        value_valid,
        header_ends,
        header_at,
    )
    if fault:
        header = headers[batch]
        raise CorruptRecordError(header.base_offset, header.position, kernels.FAULTS[fault])
    columns = [
        pa.array(offsets),
        pa.Array.from_buffers(RECORD_SCHEMA.field("timestamp").type, total, [None, pa.py_buffer(timestamps)]),
        _binary(pa.binary(), key_ends, keys, key_valid),
        _binary(pa.binary(), value_ends, values, value_valid),
        _headers(payload, header_at, header_ends, headers, rows),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA), rows


def _payloads(
    data: Buffer, headers: list[BatchHeader], limit: int
) -> tuple[kernels.Bytes, kernels.Longs, kernels.Longs]:
    """The records of each batch, decompressed, as spans of one buffer; of `data` itself if nothing is compressed."""
    view = memoryview(data)
    if all(header.compression == Compression.NONE for header in headers):
        starts = _longs(header.position + HEADER_SIZE for header in headers)
        ends = _longs(header.end for header in headers)
        payload = np.frombuffer(view, np.uint8)
    else:
        pieces = [_payload(view, header, limit) for header in headers]
        sizes = _longs(len(piece) for piece in pieces)
        ends = np.cumsum(sizes)
        starts = ends - sizes
        payload = np.frombuffer(pieces[0] if len(pieces) == 1 else b"".join(pieces), np.uint8)
    room = int((ends - starts).sum())
    if room > _MAX_COLUMN:
        raise CorruptRecordError(
            headers[0].base_offset, headers[0].position, f"{room} bytes of records are too many for one column"
        )
    # A count that the bytes can't hold would take memory that they don't justify.
    for header, size in zip(headers, (ends - starts).tolist(), strict=True):
        if not 0 <= header.record_count * MIN_RECORD_SIZE <= size:
            reason = f"{header.record_count} records can't lie in {size} bytes"
            raise CorruptRecordError(header.base_offset, header.position, reason)
    return payload, starts, ends


def _payload(view: memoryview, header: BatchHeader, limit: int) -> Buffer:
    try:
        codec = Compression(header.compression)
        return decompress(codec, view[header.position + HEADER_SIZE : header.end], limit)
    except ValueError as error:
        reason = str(error) if isinstance(error, CompressionError) else f"unknown compression {header.compression}"
        raise CorruptRecordError(header.base_offset, header.position, reason) from None


def _headers(
    payload: kernels.Bytes,
    header_at: kernels.Longs,
    header_ends: kernels.Ints,
    batches: list[BatchHeader],
    rows: list[int],
) -> pa.Array:
    total = int(header_ends[-1])
    room = len(payload) if total else 0
    key_ends, value_ends = np.zeros(total + 1, np.int32), np.zeros(total + 1, np.int32)
    keys, values = np.empty(room, np.uint8), np.empty(room, np.uint8)
    value_valid = np.empty(total, np.bool_)
    if total:
        kernels.decode_headers(payload, header_at, header_ends, key_ends, keys, value_ends, values, value_valid)
    names = _binary(pa.string(), key_ends, keys, None)
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        batch = _batch_of_bad_name(names, header_ends, rows)
        raise CorruptRecordError(
            batches[batch].base_offset, batches[batch].position, "the name of a header isn't UTF-8"
        ) from None
    entries = pa.StructArray.from_arrays(
        [names, _binary(pa.binary(), value_ends, values, value_valid)], fields=list(HEADER_TYPE)
    )
    buffers = [None, pa.py_buffer(header_ends)]
    return pa.Array.from_buffers(RECORD_SCHEMA.field("headers").type, len(header_ends) - 1, buffers, children=[entries])


def _batch_of_bad_name(names: pa.Array, header_ends: kernels.Ints, rows: list[int]) -> int:
    for index, name in enumerate(names.cast(pa.binary())):
        try:
            name.as_py().decode()
        except UnicodeDecodeError:
            row = int(np.searchsorted(header_ends, index, side="right")) - 1
            return int(np.searchsorted(rows, row, side="right")) - 1
    return 0


def _binary(kind: pa.DataType, ends: kernels.Ints, data: kernels.Bytes, valid: kernels.Flags | None) -> pa.Array:
    """A column of bytes or strings around numpy arrays; `data` is copied only if most of it is unused room."""
    used = int(ends[-1])
    content = data[:used] if used * 2 > len(data) else data[:used].copy()
    nulls = 0 if valid is None else len(valid) - int(np.count_nonzero(valid))
    bitmap = None if valid is None or not nulls else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(ends) - 1, [bitmap, pa.py_buffer(ends), pa.py_buffer(content)], nulls)


def _longs(values: Iterable[int]) -> kernels.Longs:
    return np.fromiter(values, np.int64)


# Encoding.


def encode_columns(
    columns: pa.RecordBatch | pa.Table,
    *,
    batch_size: int = 16_384,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    base_offset: int | None = 0,
    default_timestamp: int = NO_TIMESTAMP,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
) -> list[memoryview]:
    """Batches of the records that the columns hold, in order.

    Args:
        columns: any of "key", "value" (binary or string types), "timestamp" (a timestamp, or int64 in ms),
            "headers" (as in `RECORD_SCHEMA`) and "offset"; a missing column is null, other columns are an error.
        batch_size: bytes of a batch before compression, header included. A record that is larger by itself has a
            batch of its own.
        compression, level: how the records of each batch are compressed.
        base_offset: offset of the first record, the others follow; None takes the column "offset" (ascending).
        default_timestamp: ms since 1970, for records without one.
        leader_epoch, producer_id, producer_epoch, base_sequence: for the headers. The sequence advances from batch to
            batch and starts again after 2^31 - 1.
        transactional, control: bits of the attributes.

    Raises:
        ValueError: a column that isn't known, of the wrong type, or offsets that don't ascend.
    """
    source = _combine(columns)
    rows = source.num_rows
    if not rows:
        return []
    timestamps = _timestamps(source, default_timestamp)
    offsets = _offsets(source, base_offset)
    key_ends, keys, key_valid = _bytes_of(source, "key")
    value_ends, values, value_valid = _bytes_of(source, "value")
    headers = _headers_of(source)
    header_sizes = np.ones(rows, np.int32)
    if len(headers[0]):
        kernels.measure_headers(headers[0], headers[1], headers[3], headers[5], header_sizes)
    sizes = np.empty(rows, np.int32)
    firsts, lengths = np.empty(rows, np.int64), np.empty(rows, np.int64)
    number = kernels.plan_batches(
        timestamps, offsets, key_ends, key_valid, value_ends, value_valid, header_sizes,
        max(0, batch_size - HEADER_SIZE), sizes, firsts, lengths,
    )  # fmt: skip
    firsts, lengths = firsts[:number], lengths[:number]
    ends = np.cumsum(lengths + HEADER_SIZE)
    positions = ends - lengths
    out = np.empty(int(ends[-1]), np.uint8)
    kernels.encode_records(
        timestamps, offsets, key_ends, keys, key_valid, value_ends, values, value_valid, *headers,
        sizes, firsts, positions, out,
    )  # fmt: skip
    attributes = compression | transactional << 4 | control << 5
    lasts = np.append(firsts[1:], rows) - 1
    latest = np.maximum.reduceat(timestamps, firsts)
    view = out.data
    batches = []
    sequence = base_sequence
    for first, last, start, end, newest in zip(
        firsts.tolist(), lasts.tolist(), (positions - HEADER_SIZE).tolist(), ends.tolist(), latest.tolist(), strict=True
    ):
        whole = view[start:end]
        if compression is not Compression.NONE:
            packed = compress(compression, whole[HEADER_SIZE:], level)
            whole = memoryview(bytearray(HEADER_SIZE + len(packed)))
            whole[HEADER_SIZE:] = packed
        first_offset = int(offsets[first])
        header = BatchHeader(
            base_offset=first_offset,
            batch_length=len(whole) - LENGTH_END,
            partition_leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=attributes,
            last_offset_delta=int(offsets[last]) - first_offset,
            base_timestamp=int(timestamps[first]),
            max_timestamp=newest,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
            record_count=last - first + 1,
            position=0,
        )
        write_header(whole, header)
        batches.append(whole)
        if sequence != NO_SEQUENCE:
            sequence = next_sequence(sequence, header.record_count)
    return batches


def _combine(columns: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
    """One record batch of what may be a table in chunks."""
    unknown = set(columns.schema.names) - set(RECORD_SCHEMA.names)
    if unknown:
        raise ValueError(f"columns {', '.join(sorted(unknown))}: a record has {', '.join(RECORD_SCHEMA.names)}")
    if isinstance(columns, pa.RecordBatch):
        return columns
    combined = columns.combine_chunks().to_batches()
    if len(combined) > 1:
        raise ValueError("columns of more than 2 GiB: encode them in slices")
    return combined[0] if combined else pa.RecordBatch.from_pylist([], schema=columns.schema)


def _cast(source: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    column = source.column(name)
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"column {name} is {column.type}, which can't be made {kind}: {error}") from None


def _timestamps(source: pa.RecordBatch, default: int) -> kernels.Longs:
    if "timestamp" not in source.schema.names:
        return np.full(source.num_rows, default, np.int64)
    column = source.column("timestamp")
    if pa.types.is_timestamp(column.type):
        column = _cast(source, "timestamp", pa.timestamp("ms", tz=column.type.tz))
    longs = column.cast(pa.int64()).fill_null(default) if column.null_count else column.cast(pa.int64())
    return longs.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _offsets(source: pa.RecordBatch, base_offset: int | None) -> kernels.Longs:
    if base_offset is not None:
        return np.arange(base_offset, base_offset + source.num_rows, dtype=np.int64)
    if "offset" not in source.schema.names:
        raise ValueError("base_offset is None, but there is no column offset")
    column = _cast(source, "offset", pa.int64())
    offsets: kernels.Longs = column.to_numpy(zero_copy_only=False)
    if column.null_count or offsets[0] < 0 or (np.diff(offsets) <= 0).any():
        raise ValueError("offsets must be there, not negative, and ascend")
    return offsets


def _bytes_of(source: pa.RecordBatch, name: str) -> tuple[kernels.Ints, kernels.Bytes, kernels.Flags]:
    if name not in source.schema.names or pa.types.is_null(source.column(name).type):
        return np.zeros(source.num_rows + 1, np.int32), np.empty(0, np.uint8), np.zeros(source.num_rows, np.bool_)
    return _parts(_cast(source, name, pa.binary()))


def _parts(column: pa.Array) -> tuple[kernels.Ints, kernels.Bytes, kernels.Flags]:
    """Ends, bytes and validity of a binary column, without a copy of the bytes."""
    _, ends, data = column.buffers()
    size = len(column)
    bounds = np.frombuffer(ends, np.int32)[column.offset : column.offset + size + 1] if ends else np.zeros(1, np.int32)
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else np.ones(size, np.bool_)
    return bounds, content, valid


def _headers_of(source: pa.RecordBatch) -> tuple[Any, ...]:
    """Ends of each record's headers, then ends, bytes and validity of their names and values; empty without headers."""
    none = np.empty(0, np.int32)
    if "headers" not in source.schema.names or pa.types.is_null(source.column("headers").type):
        empty = np.zeros(1, np.int32), np.empty(0, np.uint8)
        return none, *empty, *empty, np.empty(0, np.bool_)
    column = _cast(source, "headers", pa.list_(HEADER_TYPE))
    if column.null_count:
        column = column.fill_null([])
    ends = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    entries = column.values
    names, values = (entries.field(index) for index in range(2))
    if entries.null_count or names.null_count:
        raise ValueError("column headers: a header must have a name")
    key_ends, keys, _ = _parts(names.cast(pa.binary()))
    value_ends, data, valid = _parts(values)
    return ends, key_ends, keys, value_ends, data, valid
