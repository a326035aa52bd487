"""Messages of Protocol Buffers, each after its indexes, to columns: one after another, by the library's parser."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as spark

from kohort.spark.formats.arrow_types import arrow_schema
from kohort.spark.formats.interfaces import Decoded, FormatError
from kohort.spark.formats.protobuf_columns import columns_of, reader_of
from kohort.spark.formats.protobuf_schema import ProtobufSchema, message_class, read_indexes


class ProtobufDecoder:
    """Reads values that are a message's indexes and the message.

    Fields are found by their numbers, as Protocol Buffers are read: with a reader's message, under its names, whatever
    the writer calls them.

    Args:
        schema: the columns wanted, by the fields' names.
        writer: what the values were written with.
        reader: the message to read them as; None for the writer's own.

    Raises:
        FormatError: the message read has another type for a column, or lacks one that can't be null.
    """

    def __init__(self, schema: spark.StructType, writer: ProtobufSchema, reader: Any | None = None) -> None:
        self.schema = arrow_schema(schema)
        self._spark = schema
        self._writer, self._reader = writer, reader
        self._required = [each.name for each in schema.fields if not each.nullable]
        self._messages: dict[tuple[int, ...], Any] = {}
        if reader is None:
            self._message((0,))
        else:
            self._check(reader)

    def decode(self, values: pa.Array) -> Decoded:
        errors: dict[int, str] = {}
        rows: list[list[Any]] = []
        nothing = [None] * len(self.schema)
        for number, value in enumerate(values.to_pylist()):
            row = nothing
            if value is not None:
                try:
                    indexes, at = read_indexes(value)
                    parse, read = self._message(indexes)
                    row = read(parse(value[at:]))
                except Exception as error:
                    errors[number] = f"no message of this schema: {str(error) or type(error).__name__}"
            rows.append(row)
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self.schema)
        arrays = [self._made(field, list(found), errors) for field, found in zip(self.schema, columns, strict=True)]
        for field, array in zip(self.schema, arrays, strict=True):
            if not field.nullable and array.null_count:
                for row_number in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist():
                    errors.setdefault(row_number, f"{field.name}: there is none, and null isn't allowed")
        if not errors:
            return Decoded(pa.RecordBatch.from_arrays(arrays, schema=self.schema), None, [])
        good = pa.array(np.delete(np.arange(len(rows)), list(errors)), pa.int64())
        kept = [array.take(good) for array in arrays]
        return Decoded(pa.RecordBatch.from_arrays(kept, schema=self.schema), good, sorted(errors.items()))

    def _message(self, indexes: tuple[int, ...]) -> Any:
        """What parses a writer's message, and what makes a row of it. Raises FormatError: it isn't the reader's."""
        if (found := self._messages.get(indexes)) is None:
            written = self._writer.message(indexes)
            if self._reader is not None and written.full_name != self._reader.full_name:
                raise FormatError(f"it is a {written.full_name}, and {self._reader.full_name} is read")
            read = self._reader or written
            self._check(read)
            found = message_class(read).FromString, reader_of(read, self.schema.names)
            self._messages[indexes] = found
        return found

    def _check(self, message: Any) -> None:
        there = {each.name: each.dataType for each in columns_of(message, self._spark.names).fields}
        for each in self._spark.fields:
            if each.name not in there:
                if not each.nullable or self._reader is not None:
                    names = ", ".join(field.name for field in message.fields)
                    raise FormatError(f"message {message.full_name} has no field {each.name}, but {names}")
            elif not _fits(there[each.name], each.dataType):
                wanted, found = each.dataType.simpleString(), there[each.name].simpleString()
                raise FormatError(f"column {each.name}: message {message.full_name} has {found}, not {wanted}")

    @staticmethod
    def _made(field: pa.Field, column: list[Any], errors: dict[int, str]) -> pa.Array:
        try:
            return pa.array(column, field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass
        for row, value in enumerate(column):
            try:
                pa.array([value], field.type)
            except Exception as error:
                column[row] = None
                errors.setdefault(row, f"{field.name}: {error}")
        return pa.array(column, field.type)


def _fits(found: spark.DataType, wanted: spark.DataType) -> bool:
    """Whether a field's values can be a column's; of what is nested, a value shows."""
    whole = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType, spark.DecimalType)
    floating = (spark.FloatType, spark.DoubleType)
    if isinstance(found, whole):
        return isinstance(wanted, (*whole, *floating))
    return type(found) is type(wanted) or (isinstance(found, floating) and isinstance(wanted, floating))
