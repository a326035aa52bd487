"""Encoded types in Arrow: reads the JSON objects that hold them, and makes Arrow columns of any type of them."""

from __future__ import annotations

import io
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pj

from kohort.spark.jobs.batches import one_batch
from kohort.spark.jobs.errors import StoredValueError

_MOST_AT_ONCE: Final = 64 * 1024 * 1024


def read_objects(values: pa.Array, schema: pa.Schema, what: str) -> pa.RecordBatch:
    """The fields named in `schema` of JSON objects, one row each; null where a field is missing.

    Meant for what Kohort wrote itself, in which line breaks are escaped.

    Args:
        values: binary or string, without nulls.
        schema: of bigint, string, boolean and structs of them.
        what: whose values these are, for errors.

    Raises:
        StoredValueError: a value is no such object.
    """
    if not len(values):
        return pa.RecordBatch.from_pylist([], schema=schema)
    size = pc.sum(pc.binary_length(values)).as_py() or 0
    if size > _MOST_AT_ONCE and len(values) > 1:
        half = len(values) // 2
        halves = [read_objects(values[:half], schema, what), read_objects(values[half:], schema, what)]
        return one_batch(pa.Table.from_batches(halves))
    lines = pc.binary_join_element_wise(values.cast(pa.binary()), b"\n", b"")
    if lines.null_count:
        raise StoredValueError(f"{what}: a value is null")
    ends = lines.offset
    offsets = np.frombuffer(lines.buffers()[1], np.int32)[ends : ends + len(lines) + 1]
    text = lines.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    try:
        table = pj.read_json(
            pa.BufferReader(text),
            read_options=pj.ReadOptions(use_threads=False, block_size=text.size + 1),
            parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowException, io.UnsupportedOperation) as error:
        raise StoredValueError(f"{what}: not what this program writes: {error}") from None
    if table.num_rows != len(values):
        raise StoredValueError(f"{what}: {len(values)} values hold {table.num_rows} objects")
    return one_batch(table.select(schema.names))


def decoded_array(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column of an encoded type as `kind`; the Arrow side of `kohort.spark.jobs.column_encoding.decoded_column`.

    Raises:
        StoredValueError: its values aren't of this type.
    """
    try:
        if column.type == kind:
            return column
        if pa.types.is_timestamp(kind):
            return column.cast(pa.timestamp("us", kind.tz)).cast(kind)
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return unbase64(column).cast(kind)
        if pa.types.is_floating(kind):
            return _floats(column).cast(kind)
        if pa.types.is_nested(kind):
            return _nested(column, kind)
        return column.cast(kind)
    except (pa.ArrowException, ValueError) as error:
        raise StoredValueError(f"a stored column can't be read as {kind}: {error}") from None


def unbase64(column: pa.Array) -> pa.Array:
    """Base64 text of one line as binary, all rows at once.

    Raises:
        ValueError: it isn't that.
    """
    text = column.cast(pa.binary())
    lengths = pc.fill_null(pc.binary_length(text), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if (lengths % 4).any():
        raise ValueError("base64 whose length is no multiple of 4")
    data = np.frombuffer(_bytes(text), np.uint8)
    sextets = _SEXTETS[data]
    if (sextets == _BAD).any():
        raise ValueError("not base64")
    quads = sextets.reshape(-1, 4).astype(np.uint32)
    words = quads[:, 0] << 18 | quads[:, 1] << 12 | quads[:, 2] << 6 | quads[:, 3]
    plain = np.empty((len(words), 3), np.uint8)
    plain[:, 0], plain[:, 1], plain[:, 2] = words >> 16, words >> 8 & 255, words & 255
    ends = np.concatenate([[0], np.cumsum(lengths)])
    padded = ends[1:][lengths > 0]
    short = np.zeros(len(lengths), np.int64)
    padding = data == ord("=")
    if len(padded):
        short[lengths > 0] = padding[padded - 1].astype(np.int64) * (1 + padding[padded - 2])
    if padding.sum() != short.sum():
        raise ValueError("base64 with padding in the middle")
    keep = np.ones(plain.size, bool)
    plain_ends = ends[1:] * 3 // 4
    keep[plain_ends[short > 0] - 1] = False
    keep[plain_ends[short > 1] - 2] = False
    offsets = np.concatenate([[0], np.cumsum(lengths * 3 // 4 - short)]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(plain.reshape(-1)[keep].tobytes())]
    found = pa.Array.from_buffers(pa.binary(), len(text), buffers)
    return pc.if_else(text.is_valid(), found, None) if text.null_count else found


def base64_texts(column: pa.Array) -> pa.Array:
    """Binary as base64 text of one line, all rows at once; null for null."""
    lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    padded = (lengths + 2) // 3 * 3
    starts = np.cumsum(padded) - padded
    plain = np.zeros(int(padded.sum()), np.uint8)
    data = np.frombuffer(_bytes(column), np.uint8)
    plain[np.arange(len(data)) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)] = data
    triples = plain.reshape(-1, 3).astype(np.uint32)
    words = triples[:, 0] << 16 | triples[:, 1] << 8 | triples[:, 2]
    quads = np.empty((len(words), 4), np.uint8)
    for place, shift in enumerate((18, 12, 6, 0)):
        quads[:, place] = _LETTERS[words >> shift & 63]
    text = quads.reshape(-1)
    ends = np.cumsum(padded) // 3 * 4
    text[ends[padded > lengths] - 1] = ord("=")
    text[ends[padded > lengths + 1] - 2] = ord("=")
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    found = pa.Array.from_buffers(pa.string(), len(column), [None, pa.py_buffer(offsets), pa.py_buffer(text.tobytes())])
    return pc.if_else(column.is_valid(), found, None) if column.null_count else found


def _alphabet() -> npt.NDArray[np.uint8]:
    table = np.full(256, _BAD, np.uint8)
    table[_LETTERS] = np.arange(64)
    table[ord("=")] = 0
    return table


_BAD: Final = 255
_LETTERS: Final = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_SEXTETS: Final = _alphabet()


def _bytes(column: pa.Array) -> bytes | memoryview:
    """All values one after the other; binary."""
    values = column.drop_null()
    _, ends, data = values.buffers()
    if data is None:
        return b""
    offsets = np.frombuffer(ends, np.int32)
    return memoryview(data)[int(offsets[values.offset]) : int(offsets[values.offset + len(values)])]


def _floats(column: pa.Array) -> pa.Array:
    """Numbers as Java writes them, "Infinity" and "1.0E10" among them, which Arrow reads alike."""
    return column.cast(pa.float64())


def _nested(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """JSON text of arrays, structs and maps."""
    from pyspark.sql.types import StructField, StructType

    from kohort.spark.formats import decoder
    from kohort.spark.internals import spark_type

    objects = pc.binary_join_element_wise('{"v":', pc.fill_null(column, "null"), "}", "").cast(pa.binary())
    schema = StructType([StructField("v", spark_type(kind))])
    decoded: Any = decoder("json", schema).decode(objects)
    if decoded.errors:
        raise ValueError(decoded.errors[0][1])
    return decoded.columns.column(0).cast(kind)
