"""Encoded types in Arrow: reads the JSON objects that hold them, and makes Arrow columns of any type of them."""

from __future__ import annotations

import io
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pj

from kohort.spark.formats.base64_columns import unbase64
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
