"""Decodes record batches into Arrow columns and encodes them, without Python objects for records.

    decoded = decode_columns(fetched)
    decoded.records.schema  # offset, timestamp, key, value, headers

    batches = encode_columns(table, compression=Compression.LZ4, producer_id=7, producer_epoch=0, base_sequence=0)

The cost is linear in bytes, plus a few microseconds a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kohort.extras import ARROW, require

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError:
    require("arrow", "reading records as Arrow columns", ARROW)
    raise

from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.primitives import Buffer, as_bytes
from kohort.protocol.records import kernels
from kohort.protocol.records.arrow import HEADER_TYPE, RECORD_SCHEMA, BytesColumn, bytes_column, cast_column
from kohort.protocol.records.batch import (
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    MAX_OFFSET,
    MIN_RECORD_SIZE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    Compression,
    check_batch,
    next_sequence,
    scan_batches,
    write_header,
)
from kohort.protocol.records.compression import CompressionError, ExpansionError, compress, decompress

__all__ = ["DEFAULT_LIMIT", "RECORD_SCHEMA", "DecodedRecords", "decode_columns", "encode_columns"]

DEFAULT_LIMIT: Final = 128 * 1024 * 1024
"""Bytes that the compressed batches of one call may decompress to."""

_MAX_COLUMN: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DecodedRecords:
    """The decoded batches of a buffer.

    Attributes:
        records: the data, with `RECORD_SCHEMA`, in the order of the batches.
        batches: headers of the data batches.
        rows: the first row of each data batch in `records`, and at the end the number of rows.
        control: headers of the control batches, in order.
        control_records: their records, with `RECORD_SCHEMA`.
    """

    records: pa.RecordBatch
    batches: Sequence[BatchHeader]
    rows: Sequence[int]
    control: Sequence[BatchHeader]
    control_records: pa.RecordBatch


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


_NO_RECORDS: Final = _empty(RECORD_SCHEMA)


def decode_columns(
    data: Buffer, headers: Iterable[BatchHeader] | None = None, *, limit: int = DEFAULT_LIMIT, check: bool = True
) -> DecodedRecords:
    """Decodes one or more batches into columns, control batches separately.

    Args:
        data: consecutive batches; an incomplete one at the end is ignored.
        headers: the batches of `data` to decode, from `scan_batches`; all by default.
        limit: total bytes that compressed batches may decompress to.
        check: whether to validate checksum and header of each batch; False only for validated batches.

    Raises:
        CorruptRecordError: a batch is invalid, doesn't decompress, or decompresses beyond the limit.
    """
    if not isinstance(data, (bytes, bytearray)):
        data = as_bytes(data)
    plain: list[BatchHeader] = []
    control: list[BatchHeader] = []
    for header in scan_batches(data) if headers is None else headers:
        _check_position(data, header, check)
        (control if header.control else plain).append(header)
    try:
        records, rows = _decode(data, plain, limit)
        control_records = _decode(data, control, limit)[0] if control else _NO_RECORDS
    except CorruptRecordError as error:
        # Without the frames below, which hold views: the caller may want to resize the buffer.
        raise error.with_traceback(None) from None
    return DecodedRecords(records, plain, rows, control, control_records)


def _check_position(data: Buffer, header: BatchHeader, check: bool) -> None:
    """Validates that the header's batch is within `data`, as the kernels rely on it."""
    position = header.position
    if position < 0 or header.batch_length < HEADER_SIZE - LENGTH_END or header.end > len(data):
        raise CorruptRecordError(header.base_offset, position, f"batch of {header.size} bytes isn't in the buffer")
    if check and check_batch(data, position) != header:
        raise CorruptRecordError(header.base_offset, position, "another batch is there than when its header was read")


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
    fault, batch, name_bytes, header_bytes = kernels.decode_records(
        payload,
        starts,
        ends,
        counts,
        _longs(header.base_offset for header in headers),
        _longs(header.last_offset_delta for header in headers),
        _longs(header.base_timestamp for header in headers),
        _longs(header.max_timestamp for header in headers),
        np.fromiter((header.log_append_time for header in headers), np.bool_),
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
        raise _corrupt(headers[batch], kernels.FAULTS[fault])
    columns = [
        pa.array(offsets),
        pa.Array.from_buffers(RECORD_SCHEMA.field("timestamp").type, total, [None, pa.py_buffer(timestamps)]),
        _binary(pa.binary(), key_ends, keys, key_valid),
        _binary(pa.binary(), value_ends, values, value_valid),
        _headers(payload, header_at, header_ends, name_bytes, header_bytes, headers, rows),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA), rows


def _corrupt(header: BatchHeader, reason: str) -> CorruptRecordError:
    return CorruptRecordError(header.base_offset, header.position, reason)


def _payloads(
    data: Buffer, headers: list[BatchHeader], limit: int
) -> tuple[kernels.Bytes, kernels.Longs, kernels.Longs]:
    """Returns the decompressed records of each batch as spans of one buffer; of `data` if nothing is compressed."""
    view = memoryview(data)
    if all(header.compression == Compression.NONE for header in headers):
        starts = _longs(header.position + HEADER_SIZE for header in headers)
        ends = _longs(header.end for header in headers)
        payload = np.frombuffer(view, np.uint8)
    else:
        pieces: list[Buffer] = []
        expanded = 0
        for header in headers:
            pieces.append(_payload(view, header, limit, expanded))
            expanded += len(pieces[-1]) if header.compression != Compression.NONE else 0
        sizes = _longs(len(piece) for piece in pieces)
        ends = np.cumsum(sizes)
        starts = ends - sizes
        payload = np.frombuffer(pieces[0] if len(pieces) == 1 else b"".join(pieces), np.uint8)
    room = int((ends - starts).sum())
    if room > _MAX_COLUMN:
        raise _corrupt(headers[0], f"{room} bytes of records are too many for one column")
    # A count too large for the bytes would allocate too much memory.
    for header, size in zip(headers, (ends - starts).tolist(), strict=True):
        if not 0 <= header.record_count * MIN_RECORD_SIZE <= size:
            raise _corrupt(header, f"{header.record_count} records can't lie in {size} bytes")
    return payload, starts, ends


def _payload(view: memoryview, header: BatchHeader, limit: int, expanded: int) -> Buffer:
    """Decompresses a batch's records; `expanded` bytes of `limit` are used up."""
    if header.compression > Compression.ZSTD:
        raise _corrupt(header, f"unknown compression {header.compression}")
    codec = Compression(header.compression)
    try:
        return decompress(codec, view[header.position + HEADER_SIZE : header.end], limit - expanded)
    except ExpansionError:
        together = ", with the batches before it," if expanded else ""
        raise _corrupt(header, f"{codec.name.lower()}{together} expands to more than {limit} bytes") from None
    except CompressionError as error:
        raise _corrupt(header, str(error)) from None


def _headers(
    payload: kernels.Bytes,
    header_at: kernels.Longs,
    header_ends: kernels.Ints,
    name_bytes: int,
    header_bytes: int,
    batches: list[BatchHeader],
    rows: list[int],
) -> pa.Array:
    """Returns the column of headers; all names have `name_bytes`, all values `header_bytes`."""
    total = int(header_ends[-1])
    key_ends, value_ends = np.zeros(total + 1, np.int32), np.zeros(total + 1, np.int32)
    keys, values = np.empty(name_bytes, np.uint8), np.empty(header_bytes, np.uint8)
    value_valid = np.empty(total, np.bool_)
    if total and (
        fault := kernels.decode_headers(
            payload, header_at, header_ends, key_ends, keys, value_ends, values, value_valid
        )
    ):
        raise _corrupt(batches[0], f"{kernels.FAULTS[fault]}: the buffer was written to in the meantime")
    names = _binary(pa.string(), key_ends, keys, None)
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        batch = batches[_batch_of_bad_name(names, header_ends, rows)]
        raise _corrupt(batch, "the name of a header isn't UTF-8") from None
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
    """Makes a column of bytes or strings from numpy arrays; `data` is copied only if most of it is unused."""
    used = int(ends[-1])
    content = data[:used] if used * 2 > len(data) else data[:used].copy()
    nulls = 0 if valid is None else len(valid) - int(np.count_nonzero(valid))
    bitmap = None if valid is None or not nulls else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(ends) - 1, [bitmap, pa.py_buffer(ends), pa.py_buffer(content)], nulls)


def _longs(values: Iterable[int]) -> kernels.Longs:
    return np.fromiter(values, np.int64)


# Encoding


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
    """Encodes columns as batches, in order.

    Args:
        columns: any of "key", "value" (bytes or strings), "timestamp" (a timestamp of any unit, cut to ms, or
            integers in ms), "headers" (as in `RECORD_SCHEMA`) and "offset"; a missing column is null, other columns
            are errors.
        batch_size: bytes of a batch before compression, header included. A record that is larger by itself has a
            batch of its own.
        compression, level: of each batch's records.
        base_offset: offset of the first record, followed by the others; None uses the column "offset" (ascending).
        default_timestamp: ms since 1970, for records without one; -1 is none.
        leader_epoch, producer_id, producer_epoch, base_sequence: for the headers. The sequence advances with the
            offsets from batch to batch, and wraps after 2^31 - 1.
        transactional, control: bits of the attributes.

    Returns:
        The batches. Without compression they share one buffer.

    Raises:
        ValueError: an unknown column or a wrong type, offsets that don't ascend, a record too large for a batch, or
            arguments of an invalid batch.
    """
    attributes = Compression(compression) | transactional << 4 | control << 5
    template = BatchHeader(
        base_offset=0, batch_length=0, partition_leader_epoch=leader_epoch, magic=MAGIC, crc=0, attributes=attributes,
        last_offset_delta=0, base_timestamp=0, max_timestamp=0, producer_id=producer_id, producer_epoch=producer_epoch,
        base_sequence=base_sequence, record_count=0, position=0,
    )  # fmt: skip
    _check_arguments(template, base_offset, default_timestamp, batch_size)
    source = _combine(columns)
    rows = source.num_rows
    if not rows:
        return []
    timestamps = _timestamps(source, default_timestamp)
    offsets = _offsets(source, base_offset)
    keys, values = _bytes_of(source, "key"), _bytes_of(source, "value")
    headers = _headers_of(source)
    header_sizes = np.ones(rows, np.int64)
    if len(headers.ends):
        kernels.measure_headers(
            headers.ends, headers.names.ends, headers.values.ends, headers.values.valid, header_sizes
        )
    sizes, firsts, lengths = (np.empty(rows, np.int64) for _ in range(3))
    number = kernels.plan_batches(
        timestamps, offsets, keys.ends, keys.valid, values.ends, values.valid, header_sizes,
        max(0, batch_size - HEADER_SIZE), sizes, firsts, lengths,
    )  # fmt: skip
    firsts, lengths = firsts[:number], lengths[:number]
    if int(lengths.max()) + HEADER_SIZE > _MAX_COLUMN:
        raise ValueError(f"a record of {int(sizes.max())} bytes is too large for a batch")
    ends = np.cumsum(lengths + HEADER_SIZE)
    positions = ends - lengths
    out = np.empty(int(ends[-1]), np.uint8)
    kernels.encode_records(
        timestamps, offsets, *keys, *values, headers.ends, headers.names.ends, headers.names.data, *headers.values,
        sizes, firsts, positions, out,
    )  # fmt: skip
    lasts = np.append(firsts[1:], rows) - 1
    latest = np.maximum.reduceat(timestamps, firsts)
    view = out.data
    batches = []
    for first, last, start, end, newest in zip(
        firsts.tolist(), lasts.tolist(), (positions - HEADER_SIZE).tolist(), ends.tolist(), latest.tolist(), strict=True
    ):
        batch = view[start:end]
        if compression is not Compression.NONE:
            packed = compress(compression, batch[HEADER_SIZE:], level)
            batch = memoryview(bytearray(HEADER_SIZE + len(packed)))
            batch[HEADER_SIZE:] = packed
        first_offset = int(offsets[first])
        header = template._replace(
            base_offset=first_offset,
            batch_length=len(batch) - LENGTH_END,
            last_offset_delta=int(offsets[last]) - first_offset,
            base_timestamp=int(timestamps[first]),
            max_timestamp=newest,
            record_count=last - first + 1,
        )
        write_header(batch, header)
        batches.append(batch)
        if base_sequence != NO_SEQUENCE:
            advanced = next_sequence(header.base_sequence, header.last_offset_delta + 1)
            template = template._replace(base_sequence=advanced)
    return batches


def _check_arguments(header: BatchHeader, base_offset: int | None, default_timestamp: int, batch_size: int) -> None:
    """Raises ValueError for what `check_batch` refuses, and for values that don't fit their fields."""
    ranges = {
        "leader_epoch": (header.partition_leader_epoch, -1, 2**31 - 1),
        "producer_id": (header.producer_id, NO_PRODUCER_ID, 2**63 - 1),
        "producer_epoch": (header.producer_epoch, NO_PRODUCER_EPOCH, 2**15 - 1),
        "base_sequence": (header.base_sequence, NO_SEQUENCE, 2**31 - 1),
        "base_offset": (base_offset or 0, 0, 2**63 - 1),
        "default_timestamp": (default_timestamp, -(2**63), 2**63 - 1),
        "batch_size": (batch_size, 0, _MAX_COLUMN),
    }
    for name, (value, low, high) in ranges.items():
        if not low <= value <= high:
            raise ValueError(f"{name} is {value}; it goes from {low} to {high}")
    if header.producer_id == NO_PRODUCER_ID and (header.base_sequence != NO_SEQUENCE or header.transactional):
        raise ValueError("a sequence or a transaction needs a producer_id")


def _combine(columns: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
    """Combines a table's chunks into one record batch."""
    unknown = set(columns.schema.names) - set(RECORD_SCHEMA.names)
    if unknown:
        raise ValueError(f"columns {', '.join(sorted(unknown))}: a record has {', '.join(RECORD_SCHEMA.names)}")
    if len(set(columns.schema.names)) < len(columns.schema.names):
        raise ValueError(f"a column is there twice: {', '.join(columns.schema.names)}")
    if isinstance(columns, pa.RecordBatch):
        return columns
    combined = columns.combine_chunks().to_batches()
    if len(combined) > 1:
        raise ValueError("columns of more than 2 GiB: encode them in slices")
    return combined[0] if combined else _empty(columns.schema)


def _timestamps(source: pa.RecordBatch, default: int) -> kernels.Longs:
    if "timestamp" not in source.schema.names:
        return np.full(source.num_rows, default, np.int64)
    column = source.column("timestamp")
    kind = column.type
    if pa.types.is_timestamp(kind):
        finer = {"us": 1000, "ns": 1_000_000}.get(kind.unit, 1)
        column = column if finer > 1 else cast_column(column, pa.timestamp("ms", tz=kind.tz), "timestamp")
    elif pa.types.is_integer(kind) or pa.types.is_null(kind):
        finer = 1
    else:
        raise ValueError(f"column timestamp is {kind}, not a timestamp or integers in ms")
    longs: kernels.Longs = cast_column(column, pa.int64(), "timestamp").fill_null(0).to_numpy(zero_copy_only=False)
    if finer > 1:
        longs = longs // finer
    return np.where(column.is_valid().to_numpy(zero_copy_only=False), longs, default) if column.null_count else longs


def _offsets(source: pa.RecordBatch, base_offset: int | None) -> kernels.Longs:
    if base_offset is not None:
        if base_offset + source.num_rows - 1 > MAX_OFFSET:
            raise ValueError(f"{source.num_rows} offsets from {base_offset} go over {MAX_OFFSET}")
        return np.arange(source.num_rows, dtype=np.int64) + base_offset
    if "offset" not in source.schema.names:
        raise ValueError("base_offset is None, but there is no column offset")
    column = source.column("offset")
    offsets: kernels.Longs = cast_column(column, pa.int64(), "offset").to_numpy(zero_copy_only=False)
    if column.null_count or offsets[0] < 0 or (offsets[1:] <= offsets[:-1]).any():
        raise ValueError("offsets must be there, not negative, and ascend")
    return offsets


def _bytes_of(source: pa.RecordBatch, name: str) -> BytesColumn:
    if name in source.schema.names:
        return bytes_column(source.column(name), name)
    rows = source.num_rows
    return BytesColumn(np.zeros(rows + 1, np.int32), np.empty(0, np.uint8), np.zeros(rows, np.bool_))


class _HeaderColumns(NamedTuple):
    """Where each record's headers end in `names` and `values`; all empty if no record has headers."""

    ends: kernels.Longs
    names: BytesColumn
    values: BytesColumn


_NO_HEADERS: Final = _HeaderColumns(np.empty(0, np.int64), *[bytes_column(pa.array([], pa.binary()), "headers")] * 2)


def _headers_of(source: pa.RecordBatch) -> _HeaderColumns:
    if "headers" not in source.schema.names or pa.types.is_null(source.column("headers").type):
        return _NO_HEADERS
    column = source.column("headers")
    try:
        # flatten() leaves out what a slice or a null list hides.
        entries = column.flatten()
        lengths = pc.list_value_length(column).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        names, values = (pc.struct_field(entries, indices=[index]) for index in range(2))
    except (pa.ArrowException, AttributeError) as error:
        raise ValueError(f"column headers is {column.type}, not lists of (key, value): {error}") from None
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    if ends[-1] != len(entries):
        raise ValueError("column headers is no valid Arrow array: its lists don't cover its values")
    if entries.null_count or names.null_count:
        raise ValueError("column headers: a header must have a name")
    return _HeaderColumns(ends, bytes_column(names, "headers.key"), bytes_column(values, "headers.value"))
