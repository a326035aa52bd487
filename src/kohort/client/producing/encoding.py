"""Batches to bytes: few records in plain Python, many by the compiled kernels."""

from __future__ import annotations

import struct
from typing import Any, Final

from kohort.client.column_codec import columns_if_loaded, load_columns
from kohort.client.producing.batch import ProducerBatch
from kohort.client.producing.settings import ProducerSettings
from kohort.protocol.records.batch import CRC_AT, HEADER_SIZE, checksum, read_header
from kohort.protocol.records.rows import decode_rows, encode_rows

FEW: Final = 256
"""Up to so many records plain Python is quicker: about 1 µs a record, where the kernels take 250 µs a batch before
they begin (measured)."""

_NO_LIMIT: Final = 2**31 - 1 - HEADER_SIZE

_ATTRIBUTES: Final = struct.Struct(">h")
_ATTRIBUTES_AT: Final = 21
_PRODUCER: Final = struct.Struct(">qhi")
_PRODUCER_AT: Final = 43
_CRC: Final = struct.Struct(">I")
_TRANSACTIONAL: Final = 0x10


def encode(batch: ProducerBatch, settings: ProducerSettings) -> None:
    """Encodes a batch, without a producer id yet, and frees its lists, except for the timestamps."""
    columns = None
    if batch.count > FEW and (columns := columns_if_loaded()) is None:
        load_columns()  # for the next batches
    if columns is None:
        batch.encoded = memoryview(
            encode_rows(
                batch.timestamps, batch.keys, batch.values, batch.headers,
                compression=settings.compression, level=settings.compression_level,
            )
        )  # fmt: skip
    else:
        import pyarrow as pa

        arrays: dict[str, Any] = {
            "value": pa.array(batch.values, pa.binary()),
            "timestamp": pa.array(batch.timestamps, pa.int64()),
        }
        if batch.keyed:
            arrays["key"] = pa.array(batch.keys, pa.binary())
        if batch.headers is not None:
            arrays["headers"] = _header_column(batch)
        (batch.encoded,) = columns.encode_columns(
            pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays)),
            batch_size=_NO_LIMIT, compression=settings.compression, level=settings.compression_level,
        )  # fmt: skip
    batch.keys, batch.values, batch.headers = [], [], None


def _header_column(batch: ProducerBatch) -> Any:
    import pyarrow as pa

    from kohort.protocol.records.arrow import RECORD_SCHEMA

    rows = [[{"key": name, "value": value} for name, value in headers] for headers in batch.headers or ()]
    return pa.array(rows, RECORD_SCHEMA.field("headers").type)


def stamp(batch: ProducerBatch, *, transactional: bool) -> None:
    """Writes producer id, epoch, sequence and the transactional flag into an encoded batch, and its checksum."""
    data = batch.encoded
    if data is None or batch.identity is None:
        return
    (attributes,) = _ATTRIBUTES.unpack_from(data, _ATTRIBUTES_AT)
    attributes = attributes | _TRANSACTIONAL if transactional else attributes & ~_TRANSACTIONAL
    _ATTRIBUTES.pack_into(data, _ATTRIBUTES_AT, attributes)
    _PRODUCER.pack_into(data, _PRODUCER_AT, *batch.identity, batch.sequence)
    _CRC.pack_into(data, CRC_AT, checksum(data, read_header(data)))


def split_records(batch: ProducerBatch, settings: ProducerSettings) -> list[tuple[memoryview, int]]:
    """Splits an encoded batch of several records in two; returns bytes and number of records of each."""
    assert batch.encoded is not None
    rows = decode_rows(batch.encoded, read_header(batch.encoded))
    middle = len(rows.keys) // 2
    halves = []
    for part in (slice(0, middle), slice(middle, None)):
        data = encode_rows(
            rows.timestamps[part], rows.keys[part], rows.values[part], rows.headers[part],
            compression=settings.compression, level=settings.compression_level,
        )  # fmt: skip
        halves.append((memoryview(data), len(rows.timestamps[part])))
    return halves
