"""State of processors as JSON in Arrow, whole columns at once: objects in encoded types, and lists of such objects.

The encoded types are those of `kohort.spark.jobs.column_encoding`, so every store has them alike.
"""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.formats.base64_columns import base64_texts
from kohort.spark.formats.json_encoder import plain
from kohort.spark.jobs.arrow_encoding import decoded_array, read_objects
from kohort.spark.jobs.arrow_key_encoding import escaped, iso_texts, quoted_texts
from kohort.spark.jobs.arrow_values import json_object, number_texts

_ROWS: Final = "rows"


def encoded_kind(kind: pa.DataType) -> pa.DataType:
    """The encoded type of an Arrow type that Spark exchanges columns in."""
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        return pa.int64()
    return kind if pa.types.is_boolean(kind) else pa.string()


def object_texts(rows: pa.Table) -> pa.Array:
    """Rows as JSON objects (binary) of encoded types; of no columns as empty objects."""
    if not rows.num_columns:
        return pa.repeat(pa.scalar(b"{}"), rows.num_rows)
    columns = [each.combine_chunks() for each in rows.columns]
    return json_object([(name, _text(column)) for name, column in zip(rows.column_names, columns, strict=True)])


def objects_of(texts: pa.Array, schema: pa.Schema, what: str) -> pa.Table:
    """What `object_texts` was given. `what`: whose they are, for errors.

    Raises:
        StoredValueError: they are something else.
    """
    if not len(schema):
        return pa.table({"rows": pa.nulls(len(texts))}).select([])
    batch = read_objects(texts, _encoded(schema), what)
    return _decoded(batch.columns, schema)


def list_texts(rows: pa.Table, ends: npt.NDArray[np.int64]) -> pa.Array:
    """Lists of rows as JSON (binary): those up to the first end, from there up to the second, and so on."""
    objects = object_texts(rows)
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, objects.cast(pa.string()))
    return pc.binary_join_element_wise(f'{{"{_ROWS}":[', pc.binary_join(lists, ","), "]}", "").cast(pa.binary())


def lists_of(texts: pa.Array, schema: pa.Schema, what: str) -> tuple[npt.NDArray[np.int64], pa.Table]:
    """All rows of some lists, and which list each is of. Raises as `objects_of`."""
    kinds = pa.list_(pa.struct(list(_encoded(schema))))
    lists = read_objects(texts, pa.schema([pa.field(_ROWS, kinds)]), what).column(0)
    rows = lists.flatten()
    numbers = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers, _decoded(rows.flatten(), schema)


def _encoded(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, encoded_kind(field.type)) for field in schema])


def _decoded(columns: list[pa.Array], schema: pa.Schema) -> pa.Table:
    arrays = [decoded_array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, names=schema.names).cast(
        pa.schema([each.with_nullable(True) for each in schema])
    )


def _text(column: pa.Array) -> pa.Array:
    """The JSON of each value in its encoded type; null for null."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).cast(pa.string())
    if pa.types.is_string(kind):
        return quoted_texts(escaped(column))
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return quoted_texts(number_texts(column))
    if pa.types.is_date(kind):
        return pc.if_else(column.is_valid(), quoted_texts(iso_texts(pc.fill_null(column, 0))), None)
    if pa.types.is_binary(kind):
        return quoted_texts(base64_texts(column))
    return _each(column)


def _each(column: pa.Array) -> pa.Array:
    """Values of types that Arrow has no texts for, one after the other: the JSON of their JSON."""
    return pa.array([None if value is None else _nested(value) for value in column.to_pylist()], pa.string())


def _nested(value: Any) -> str:
    return json.dumps(json.dumps(plain(value), separators=(",", ":"), ensure_ascii=False), ensure_ascii=False)
