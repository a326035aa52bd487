"""JSON objects, one a value, to columns."""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from pyspark.sql import types as spark

from kohort.spark.formats.arrow_types import arrow_schema
from kohort.spark.formats.byte_columns import Ints
from kohort.spark.formats.interfaces import Decoded, FormatError
from kohort.spark.formats.json_columns import Column, NotPlainError, column
from kohort.spark.formats.json_values import BadValueError, maker, parsed
from kohort.spark.formats.times import ISO, TimeFormats, check_times

_ONE_BY_ONE: Final = 32
"""Rows that are looked at one by one if one of them isn't plain."""

_PARTS: Final = 16
"""Of more rows, so many parts are tried on their own."""


class JsonDecoder:
    """Reads values that are one JSON object (RFC 8259, UTF-8) each.

    - Fields are found by their exact names; of several with one name, the last counts. One that isn't there is null.
    - Times are as `times` says: by default strings in ISO 8601's usual forms (2013-01-31T05:00:00.123Z; a blank for
      the T, an offset for the Z), UTC if they have no zone; dates are 2013-01-31; bytes are base64.
    - A whole number may be written as 12.0 or 1e3; what isn't a string becomes one, where a string is wanted, as it
      does in Spark's `from_json`.
    - NaN, Infinity and -Infinity are numbers.
    - A null, or a field that is missing, is an error where the column is NOT NULL.

    `pyarrow.json` reads many rows at once, and fails if one of them can't be read, or not so simply. Then those that
    msgspec wouldn't read are looked at one by one, and the others read at once; or, if that fails, too, parts of them.
    All rows are looked at one by one if a schema has maps, or decimals of more than 15 digits. (Of those with fewer,
    one that is nearer to 0 than a double can be is 0.)

    Args:
        schema: the columns wanted.
        times: how TIMESTAMP columns are written.

    Attributes:
        schema: of the columns.

    Raises:
        FormatError: a type that JSON can't have, no column at all, two of one name, or times that can't be.
    """

    def __init__(self, schema: spark.StructType, times: TimeFormats = ISO) -> None:
        if not schema.fields:
            raise FormatError("a schema needs a column")
        check_times(times)
        _check_names(schema)
        self.schema = arrow_schema(schema)
        self._nulls = all(each.nullable for each in schema.fields)
        self._make = maker(schema, times)
        self._columns = column(schema, times)
        self._likely = None if self._columns is None else msgspec.json.Decoder(self._columns.likely)
        # A field that no record has, as none knows its name: each object has it once, if each value is one object.
        self._marker = secrets.token_hex(8)

    def decode(self, values: pa.Array) -> Decoded:
        values = _binary(values)
        errors: dict[int, str] = {}
        columns = self._decode(values, np.arange(len(values)), errors)
        if not errors:
            return Decoded(columns, None, [])
        good = np.delete(np.arange(len(values)), list(errors))
        return Decoded(columns, pa.array(good, pa.int64()), sorted(errors.items()))

    def _decode(self, values: pa.Array, numbers: Ints, errors: dict[int, str]) -> pa.RecordBatch:
        """The rows of values, without those that have errors; `numbers` are theirs."""
        if self._likely is None or self._columns is None:
            return self._one_by_one(values, numbers, errors)
        with suppress(pa.ArrowException, ValueError):
            return self._at_once(values, self._columns)
        likely = np.fromiter(map(self._is_likely, values.to_pylist()), np.bool_, len(values))
        if len(values) <= _ONE_BY_ONE or not likely.any():
            return self._one_by_one(values, numbers, errors)
        if not likely.all():
            with suppress(pa.ArrowException, ValueError):
                quick = self._at_once(values.filter(pa.array(likely)), self._columns)
                slow = self._one_by_one(values.filter(pa.array(~likely)), numbers[~likely], errors)
                left = [number for number in numbers[~likely].tolist() if number not in errors]
                order = np.argsort(np.concatenate([numbers[likely], np.array(left, np.int64)]))
                return pa.Table.from_batches([quick, slow]).take(pa.array(order)).combine_chunks().to_batches()[0]
        parts = range(0, len(values), -(-len(values) // _PARTS))
        return pa.concat_batches(
            [self._decode(values.slice(at, parts.step), numbers[at : at + parts.step], errors) for at in parts]
        )

    def _is_likely(self, value: bytes | None) -> bool:
        assert self._likely is not None
        try:
            if value is not None:
                self._likely.decode(value)
        except (ValueError, RecursionError):
            return False
        return True

    def _at_once(self, values: pa.Array, row: Column) -> pa.RecordBatch:
        """The rows of values that are all plain.

        Raises:
            ValueError, pa.ArrowException: they aren't.
        """
        there = values.drop_null() if values.null_count else values
        if values.null_count and not self._nulls:
            raise NotPlainError
        found = self._read(there, row) if len(there) else pa.array([], row.read)
        made = row.make(found)
        if values.null_count:
            order = np.zeros(len(values), np.int64)
            is_there = values.is_valid().to_numpy(zero_copy_only=False)
            order[is_there] = np.arange(len(there))
            made = made.take(pa.array(order, mask=~is_there))
        return pa.RecordBatch.from_arrays(made.flatten(), schema=self.schema)

    def _read(self, values: pa.Array, row: Column) -> pa.Array:
        """A struct for each value, as `pyarrow.json` reads them."""
        if not pc.all(pc.starts_with(values, "{")).as_py():
            raise NotPlainError
        text = _content(pc.binary_replace_slice(values, 0, 1, f'\n{{"{self._marker}":0,'.encode()))
        fields = [pa.field(self._marker, pa.int8()), *row.read]
        table = pa.json.read_json(
            pa.BufferReader(text),
            pa.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            pa.json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"),
        )
        marks, *columns = (each.combine_chunks() for each in table.itercolumns())
        if len(marks) != len(values) or marks.null_count:  # several objects in a value, or one in several
            raise NotPlainError
        return pa.StructArray.from_arrays(columns, fields=list(row.read))

    def _one_by_one(self, values: pa.Array, numbers: Ints, errors: dict[int, str]) -> pa.RecordBatch:
        rows = []
        for number, value in zip(numbers.tolist(), values.to_pylist(), strict=True):
            try:
                rows.append(self._row(value))
            except BadValueError as error:
                errors[number] = str(error)
        columns = [pa.array([each[field.name] for each in rows], field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _row(self, value: bytes | None) -> dict[str, Any]:
        if value is None:
            if not self._nulls:
                raise BadValueError("there's no value, and the schema has columns that can't be null")
            return dict.fromkeys(self.schema.names)
        if not value.strip():
            raise BadValueError("an empty value; a JSON object is wanted")
        made: dict[str, Any] = self._make(parsed(value))
        return made


def _binary(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values if values.type == pa.binary() else values.cast(pa.binary())


def _content(values: pa.Array) -> pa.Buffer:
    """All bytes of a column that begins with its buffer, checked to be UTF-8."""
    _, offsets, content = values.buffers()
    ends = np.frombuffer(offsets, np.int32)[[values.offset, values.offset + len(values)]]
    pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(ends), content]).cast(pa.string())
    return content.slice(int(ends[0]), int(ends[1] - ends[0]))


def _check_names(kind: spark.DataType, prefix: str = "") -> None:
    """Raises FormatError if two columns, or two fields of a struct, have one name."""
    if isinstance(kind, spark.ArrayType):
        _check_names(kind.elementType, prefix)
    elif isinstance(kind, spark.MapType):
        _check_names(kind.valueType, prefix)
    elif isinstance(kind, spark.StructType):
        for each in kind.fields:
            if kind.names.count(each.name) > 1:
                raise FormatError(f"column {prefix}{each.name} is there twice")
            _check_names(each.dataType, f"{prefix}{each.name}.")
