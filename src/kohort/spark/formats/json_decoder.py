"""JSON objects, one a value, to columns."""

from __future__ import annotations

import secrets
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from pyspark.sql import types as spark

from kohort.spark.formats.arrow_types import arrow_schema
from kohort.spark.formats.byte_columns import Bools, Ints
from kohort.spark.formats.flat_json import flat_json
from kohort.spark.formats.interfaces import Decoded, FormatError
from kohort.spark.formats.json_columns import Column, NotPlainError, column
from kohort.spark.formats.json_values import BadValueError, maker, parsed
from kohort.spark.formats.times import ISO, TimeFormats, check_times

_ONE_BY_ONE: Final = 32
"""Rows that are looked at one by one if one of them isn't plain."""

_FEW: Final = 64
"""So many rows tell whether it pays to look for flat ones. Of no more, they aren't read apart from the others."""

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

    A compiled loop reads what is flat (`json_kernel`). `pyarrow.json` reads the other rows at once, and fails if one of
    them can't be read. Then those that msgspec wouldn't read are looked at one by one, as are those of which columns
    can't be made; the others are read at once, or, if that fails, too, parts of them.
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
        self._flat = None if self._columns is None else flat_json(self._columns.read)
        self._likely = None if self._columns is None else msgspec.json.Decoder(self._columns.likely)
        # A field that no record has, as none knows its name: each object has it once, if each value is one object.
        self._marker = secrets.token_hex(8)

    def decode(self, values: pa.Array) -> Decoded:
        values = _binary(values)
        errors: dict[int, str] = {}
        columns = self._flat_and_others(values, errors)
        if not errors:
            return Decoded(columns, None, [])
        good = np.delete(np.arange(len(values)), list(errors))
        return Decoded(columns, pa.array(good, pa.int64()), sorted(errors.items()))

    def _flat_and_others(self, values: pa.Array, errors: dict[int, str]) -> pa.RecordBatch:
        """The rows of values, without those that have errors."""
        numbers, many = np.arange(len(values)), len(values) > _FEW
        if self._flat is None or self._columns is None:
            return self._decode(values, numbers, errors)
        if many and not _mostly(self._flat.read(values.slice(0, _FEW))[1]):
            return self._decode(values, numbers, errors)
        found, flat = self._flat.read(values)
        while flat.all() or (many and _mostly(flat)):
            try:
                made = self._batch(self._columns.make(found if flat.all() else found.filter(pa.array(flat))))
            except NotPlainError as error:
                flat[np.flatnonzero(flat)[error.rows]] = False
                continue
            except (pa.ArrowException, ValueError):
                break
            if flat.all():
                return made
            others = self._decode(values.filter(pa.array(~flat)), numbers[~flat], errors)
            return _in_order(made, others, flat, numbers, errors)
        return self._decode(values, numbers, errors)

    def _decode(self, values: pa.Array, numbers: Ints, errors: dict[int, str]) -> pa.RecordBatch:
        """The rows of values, without those that have errors; `numbers` are theirs."""
        if self._likely is None or self._columns is None:
            return self._one_by_one(values, numbers, errors)
        try:
            return self._at_once(values, self._columns)
        except NotPlainError as error:
            plain = ~error.rows
        except (pa.ArrowException, ValueError):
            plain = np.fromiter(map(self._is_likely, values.to_pylist()), np.bool_, len(values))
        if not plain.any() or len(values) <= _ONE_BY_ONE:
            return self._one_by_one(values, numbers, errors)
        if plain.all():
            parts = range(0, len(values), -(-len(values) // _PARTS))
            return pa.concat_batches(
                [self._decode(values.slice(at, parts.step), numbers[at : at + parts.step], errors) for at in parts]
            )
        quick = self._decode(values.filter(pa.array(plain)), numbers[plain], errors)
        slow = self._one_by_one(values.filter(pa.array(~plain)), numbers[~plain], errors)
        return _in_order(quick, slow, plain, numbers, errors)

    def _is_likely(self, value: bytes | None) -> bool:
        assert self._likely is not None
        try:
            if value is not None:
                self._likely.decode(value)
                value.decode()  # it skips what it isn't asked for
                return value.strip(b"{} \t\r\n") != b""  # in an empty object there is no place for the marker
        except (ValueError, RecursionError):
            return False
        return True

    def _at_once(self, values: pa.Array, row: Column) -> pa.RecordBatch:
        """The rows of values that are all plain.

        Raises:
            NotPlainError: those that aren't.
            ValueError, pa.ArrowException: some aren't.
        """
        if not values.null_count:
            made = row.make(self._read(values, row))
        else:
            is_there = values.is_valid().to_numpy(zero_copy_only=False)
            if not self._nulls:
                raise NotPlainError(~is_there)
            there = values.drop_null()
            order = np.cumsum(is_there) - 1
            try:
                made = row.make(self._read(there, row)).take(pa.array(order, mask=~is_there))
            except NotPlainError as error:
                raise NotPlainError(is_there & error.rows[order]) from None
        return self._batch(made)

    def _batch(self, made: pa.StructArray) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(made.flatten(), schema=self.schema)

    def _read(self, values: pa.Array, row: Column) -> pa.Array:
        """A struct for each value, as `pyarrow.json` reads them."""
        if not len(values):
            return pa.array([], row.read)
        objects = pc.starts_with(values, "{")
        if not pc.all(objects).as_py():
            raise NotPlainError(~objects.to_numpy(zero_copy_only=False))
        text = _content(pc.binary_replace_slice(values, 0, 1, f'\n{{"{self._marker}":0,'.encode()))
        fields = [pa.field(self._marker, pa.int8()), *row.read]
        table = pa.json.read_json(
            pa.BufferReader(text),
            pa.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            pa.json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"),
        )
        marks, *columns = (each.combine_chunks() for each in table.itercolumns())
        if len(marks) != len(values) or marks.null_count:  # several objects in a value, or one in several
            raise ValueError("not one object a value")
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


def _in_order(
    some: pa.RecordBatch, others: pa.RecordBatch, are_some: Bools, numbers: Ints, errors: dict[int, str]
) -> pa.RecordBatch:
    """Rows that were decoded apart, in their order; those with errors are in neither."""
    left = np.concatenate([numbers[are_some], numbers[~are_some]])
    if errors:
        left = left[~np.isin(left, list(errors))]
    return pa.concat_batches([some, others]).take(pa.array(np.argsort(left), pa.int64()))


def _mostly(flat: Bools) -> bool:
    """Whether it pays to read flat rows apart from the others."""
    return bool(2 * np.count_nonzero(flat) >= len(flat))


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
