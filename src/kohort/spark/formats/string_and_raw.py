"""The formats "string" and "raw": values that are text, or bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import types as spark

from kohort.spark.formats.arrow_types import arrow_schema
from kohort.spark.formats.byte_columns import byte_column
from kohort.spark.formats.interfaces import Decoded, FormatError
from kohort.spark.formats.text_kernels import is_text


class PlainDecoder:
    """Reads values as they are, into one column: "string" as UTF-8 text, "raw" as bytes.

    Raises:
        FormatError: a schema with other columns.
    """

    def __init__(self, format: str, schema: spark.StructType) -> None:  # noqa: A002
        _check(format, schema)
        self.schema = arrow_schema(schema)
        self._text, self._nulls = format == "string", schema.fields[0].nullable

    def decode(self, values: pa.Array) -> Decoded:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        good = np.ones(len(values), np.bool_)
        errors = {}
        if not self._nulls and values.null_count:
            good &= values.is_valid().to_numpy(zero_copy_only=False)
            errors = dict.fromkeys(np.flatnonzero(~good).tolist(), "there's no value, and the column can't be null")
        if self._text and not pa.types.is_string(values.type):
            try:
                values = values.cast(pa.string())
            except pa.ArrowInvalid:
                at, text = byte_column(values), np.ones(len(values), np.bool_)
                is_text(at.data, at.starts, at.sizes, text)
                text |= ~at.there
                errors |= {row: _why(at.value(row)) for row in np.flatnonzero(~text).tolist()}
                good &= text
        if errors:
            rows = pa.array(np.flatnonzero(good), pa.int64())
            values = values.take(rows).cast(self.schema.field(0).type)
            return Decoded(pa.RecordBatch.from_arrays([values], schema=self.schema), rows, sorted(errors.items()))
        return Decoded(
            pa.RecordBatch.from_arrays([values.cast(self.schema.field(0).type)], schema=self.schema), None, []
        )


class PlainEncoder:
    """Writes one column as it is: "string" as UTF-8 text, "raw" as bytes.

    Raises:
        FormatError: a schema with other columns.
    """

    def __init__(self, format: str, schema: spark.StructType) -> None:  # noqa: A002
        _check(format, schema)
        self._name = schema.names[0]

    def encode(self, table: pa.Table | pa.RecordBatch) -> pa.Array:
        if self._name not in table.schema.names:
            raise ValueError(f"there's no column {self._name}, but {', '.join(table.schema.names) or 'none'}")
        column = table.column(self._name)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        return column.cast(pa.binary())


def _check(name: str, schema: spark.StructType) -> None:
    wanted = spark.StringType if name == "string" else spark.BinaryType
    if len(schema.fields) != 1 or not isinstance(schema.fields[0].dataType, wanted):
        kind = "STRING" if name == "string" else "BINARY"
        raise FormatError(f'format "{name}" has one column of type {kind}, not {schema.simpleString()}')


def _why(value: bytes) -> str:
    try:
        value.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8: {error.reason} at byte {error.start}"
    return "not UTF-8"
