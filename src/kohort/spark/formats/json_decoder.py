"""JSON objects, one a value, to columns."""

from __future__ import annotations

import base64
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import types as spark

from kohort.spark.formats import json_kernel as kernels
from kohort.spark.formats.arrow_types import arrow_schema, arrow_type
from kohort.spark.formats.byte_columns import Bools, ByteColumn, booleans, byte_column, combined, fixed, gathered
from kohort.spark.formats.interfaces import Decoded, FormatError
from kohort.spark.formats.json_values import BITS, BadValueError, maker, parsed
from kohort.spark.formats.text_kernels import is_text, unescape
from kohort.spark.formats.times import FIRST_US, ISO, LAST_US, Counted, TimeFormats, Written, check_times, time_format

_KINDS: Final[dict[type[spark.DataType], int]] = {
    spark.ByteType: kernels.LONG,
    spark.ShortType: kernels.LONG,
    spark.IntegerType: kernels.LONG,
    spark.LongType: kernels.LONG,
    spark.FloatType: kernels.DOUBLE,
    spark.DoubleType: kernels.DOUBLE,
    spark.BooleanType: kernels.BOOLEAN,
    spark.StringType: kernels.TEXT,
    spark.VarcharType: kernels.TEXT,
    spark.CharType: kernels.TEXT,
    spark.BinaryType: kernels.TEXT,
    spark.DecimalType: kernels.DECIMAL,
    spark.TimestampType: kernels.TIMESTAMP,
    spark.TimestampNTZType: kernels.WALL_CLOCK,
    spark.DateType: kernels.DATE,
    spark.ArrayType: kernels.SPAN,
    spark.MapType: kernels.OBJECT,
    spark.StructType: kernels.OBJECT,
}


class JsonDecoder:
    """Reads values that are one JSON object (RFC 8259, UTF-8) each.

    - Fields are found by their exact names; of several with one name, the last counts. One that isn't there is null.
    - Times are as `times` says: by default strings in ISO 8601's usual forms (2013-01-31T05:00:00.123Z; a blank for
      the T, an offset for the Z), UTC if they have no zone; dates are 2013-01-31; bytes are base64.
    - A whole number may be written as 12.0 or 1e3; what isn't a string becomes one, where a string is wanted, as it
      does in Spark's `from_json`.
    - NaN, Infinity and -Infinity are numbers.
    - A null, or a field that is missing, is an error where the column is NOT NULL.

    Flat columns and structs are read by compiled loops, arrays and maps value by value.

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
        self.schema = arrow_schema(schema)
        self._struct = _Struct(schema, times)
        self._make = maker(schema, times)
        self._nulls = all(each.nullable for each in schema.fields)

    def decode(self, values: pa.Array) -> Decoded:
        at = byte_column(values)
        doubtful = np.zeros(len(at.starts), np.bool_)
        _check_text(at, doubtful)
        columns = self._struct.read(at.data, at.starts, at.sizes, at.there & ~doubtful, doubtful)
        if not self._nulls:
            doubtful |= ~at.there
        quick = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        if not doubtful.any():
            return Decoded(quick, None, [])
        rows, errors = [], {}
        for row in np.flatnonzero(doubtful).tolist():
            try:
                rows.append(self._row(at, row))
            except BadValueError as error:
                errors[row] = str(error)
        slow = [pa.array([each[field.name] for each in rows], field.type) for field in self.schema]
        return combined(quick, pa.RecordBatch.from_arrays(slow, schema=self.schema), doubtful, errors)

    def _row(self, at: ByteColumn, row: int) -> dict[str, Any]:
        if not at.there[row]:
            raise BadValueError("there's no value, and the schema has columns that can't be null")
        text = at.value(row)
        if not text.strip():
            raise BadValueError("an empty value; a JSON object is wanted")
        made: dict[str, Any] = self._make(parsed(text))
        return made


class _Struct:
    """A struct's fields, and how they are read."""

    def __init__(self, schema: spark.StructType, times: TimeFormats, prefix: str = "") -> None:
        names = [each.name.encode() for each in schema.fields]
        for name in schema.names:
            if schema.names.count(name) > 1:
                raise FormatError(f"column {prefix}{name} is there twice")
        self._names = np.frombuffer(b"".join(names) or b"\0", np.uint8)
        self._ends = np.cumsum([0, *map(len, names)])
        self._fields = [_Field(each.dataType, f"{prefix}{each.name}", times) for each in schema.fields]
        self._kinds = np.array([each.kind for each in self._fields], np.int8)
        ranges = [each.range for each in self._fields]
        self._leasts = np.array([least for least, _ in ranges], np.int64)
        self._mosts = np.array([most for _, most in ranges], np.int64)
        self._required = [number for number, each in enumerate(schema.fields) if not each.nullable]

    def read(self, data: Any, starts: Any, sizes: Any, wanted: Bools, doubtful: Bools) -> list[pa.Array]:
        """The columns of rows, each one object; rows that need a closer look become doubtful."""
        shape = len(self._fields), len(starts)
        found = np.zeros(shape, np.uint8)
        at, size = np.empty(shape, np.int32), np.empty(shape, np.int32)
        longs, doubles = np.empty(shape, np.int64), np.empty(shape, np.float64)
        kernels.read_objects(
            data, starts, sizes, wanted, self._names, self._ends, self._kinds, self._leasts, self._mosts,
            found, at, size, longs, doubles, doubtful,
        )  # fmt: skip
        for number in self._required:
            doubtful |= wanted & (found[number] == 0)
        found[:, doubtful] = 0
        return [
            field.column(data, found[number], at[number], size[number], longs[number], doubles[number], doubtful)
            for number, field in enumerate(self._fields)
        ]


class _Field:
    """Makes a column of what was found of a field."""

    def __init__(self, kind: spark.DataType, name: str, times: TimeFormats) -> None:
        self._arrow = arrow_type(kind, name)
        self._make = maker(kind, times, name)
        self.kind, self.range = _KINDS[type(kind)], _range(kind)
        self._written: Written | None = None
        if self.kind == kernels.TIMESTAMP and (times.of(name) or times.zone != "UTC"):
            way = time_format(times, name)
            if isinstance(way, Counted):
                self.kind, self.range = kernels.EPOCH, (way.scale, LAST_US)
            else:
                self.kind, self._written = kernels.TEXT, way
        self._inner = _Struct(kind, times, f"{name}.") if isinstance(kind, spark.StructType) else None
        self._width = None if self.kind not in _WIDTHS else np.dtype(_WIDTHS[self.kind])
        if self.kind == kernels.LONG:
            self._width = np.dtype(f"int{BITS[type(kind)]}")

    def column(
        self, data: Any, found: Any, starts: Any, sizes: Any, longs: Any, doubles: Any, doubtful: Bools
    ) -> pa.Array:
        there = found != 0
        if self.kind == kernels.EPOCH:
            doubtful |= there & (longs < FIRST_US)
        if self.kind == kernels.DOUBLE:
            rough = np.flatnonzero(found == kernels.ROUGH)
            if len(rough):
                text = gathered(pa.string(), data, starts[rough], sizes[rough], np.ones(len(rough), np.bool_))
                doubles[rough] = text.cast(pa.float64()).to_numpy(zero_copy_only=False)
            single = pa.types.is_float32(self._arrow)
            with np.errstate(over="ignore", invalid="ignore"):  # what isn't there may be any bits
                return fixed(self._arrow, doubles.astype(np.float32) if single else doubles, there)
        if self.kind == kernels.BOOLEAN:
            return booleans((longs != 0) & there, there)
        if self._width is not None:
            return fixed(self._arrow, longs.astype(self._width, copy=False), there)
        if self.kind == kernels.TEXT:
            text = self._text(data, found, starts, sizes, there, doubtful)
            if self._written is not None:
                micros, bad = self._written.read(byte_column(text))
                doubtful |= bad
                return fixed(self._arrow, micros, there & ~bad)
            return self._bytes(text, doubtful) if pa.types.is_binary(self._arrow) else text
        if self.kind == kernels.DECIMAL:
            return fixed(self._arrow, np.stack([longs, longs >> 63], axis=1), there)  # 128 bits, the low ones first
        if self._inner is not None:
            columns = self._inner.read(data, starts, np.where(there, sizes, 0), there, doubtful)
            return pa.StructArray.from_arrays(columns, fields=list(self._arrow), mask=pa.array(~there))
        return self._one_by_one(ByteColumn(data, starts, sizes, there), doubtful)

    def _text(self, data: Any, found: Any, starts: Any, sizes: Any, there: Bools, doubtful: Bools) -> pa.Array:
        if not (found == kernels.ROUGH).any():
            return gathered(pa.string(), data, starts, sizes, there)
        ends = np.empty(len(found) + 1, np.int32)
        out = np.empty(int(sizes[there].sum(dtype=np.int64)), np.uint8)
        unescape(data, starts, sizes, found, ends, out, doubtful)
        there = there & ~doubtful
        bits = pa.py_buffer(np.packbits(there, bitorder="little"))
        return pa.Array.from_buffers(pa.string(), len(found), [bits, pa.py_buffer(ends), pa.py_buffer(out)])

    def _bytes(self, texts: pa.Array, doubtful: Bools) -> pa.Array:
        made: list[bytes | None] = []
        for row, text in enumerate(texts.to_pylist()):
            try:
                made.append(None if text is None else base64.b64decode(text, validate=True))
            except ValueError:
                made.append(None)
                doubtful[row] = True
        return pa.array(made, pa.binary())

    def _one_by_one(self, at: ByteColumn, doubtful: Bools) -> pa.Array:
        made: list[Any] = [None] * len(at.there)
        for row in np.flatnonzero(at.there).tolist():
            try:
                made[row] = self._make(parsed(at.value(row)))
            except BadValueError:
                doubtful[row] = True
        return pa.array(made, self._arrow)


_WIDTHS: Final = {
    kernels.TIMESTAMP: "int64",
    kernels.EPOCH: "int64",
    kernels.WALL_CLOCK: "int64",
    kernels.DATE: "int32",
}


def _range(kind: spark.DataType) -> tuple[int, int]:
    """What the loops take as the least and the most: of decimals the scale, and so many digits as 64 bits hold."""
    if isinstance(kind, spark.DecimalType):
        return kind.scale, 10 ** min(kind.precision, 18) - 1
    most = 2 ** (BITS.get(type(kind), 64) - 1) - 1
    return -most - 1, most


def _check_text(at: ByteColumn, doubtful: Bools) -> None:
    """Make rows doubtful that aren't UTF-8."""
    rows = len(at.starts)
    if not rows:
        return
    first, last = int(at.starts[0]), int(at.starts[-1] + at.sizes[-1])
    ends = pa.py_buffer(np.array([first, last], np.int32))
    whole = pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(at.data)])
    try:
        # What is UTF-8 as a whole may be divided within a character, but not where an object begins and ends.
        whole.cast(pa.string())
    except pa.ArrowInvalid:
        good = np.ones(rows, np.bool_)
        is_text(at.data, at.starts, at.sizes, good)
        doubtful |= at.there & ~good
