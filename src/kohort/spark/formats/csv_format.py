"""CSV (RFC 4180), one record a value and no header, to columns and back, by Arrow: many rows at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pyspark.sql import types as spark

from kohort.spark.formats.arrow_types import arrow_schema
from kohort.spark.formats.byte_columns import Ints
from kohort.spark.formats.interfaces import Decoded, FormatError
from kohort.spark.formats.times import FIRST_US, LAST_US

_MARK: Final = "\ufeff"
_BLOCK: Final = 1 << 20
_NULLS: Final = [""]
_LAST: Final = pa.array([""])
_MAX_FIELDS: Final = 1000
_NO_DELIMITERS: Final = "\"'\0\r\n+-.:"
"""Beside letters and digits: only texts are in quotes, so what numbers, times, true and false have is between none."""


@dataclass(frozen=True)
class CsvFields:
    """What is in a record.

    Attributes:
        names: of its fields, in their order.
        delimiter: between them, one character.
    """

    names: tuple[str, ...]
    delimiter: str = ","


class CsvDecoder:
    """Reads values that are one record each.

    A field that is empty without quotes is null, one in quotes an empty string. Records have all the fields. Times are
    in ISO 8601, UTC if they have no zone; true and false are those words.

    Many rows are read at once. If that fails, halves of them are, until the bad ones are alone.

    Args:
        schema: the columns wanted, by the fields' names.
        fields: all that are in a record; by default the columns, with commas.

    Raises:
        FormatError: a type that a field can't have, or a delimiter that can't be.
    """

    def __init__(self, schema: spark.StructType, fields: CsvFields | None = None) -> None:
        fields = fields or CsvFields(tuple(schema.names))
        delimiter = fields.delimiter
        check_csv(schema, delimiter)
        self.schema = arrow_schema(schema)
        self._required = [number for number, each in enumerate(schema.fields) if not each.nullable]
        if len(fields.names) > _MAX_FIELDS:
            raise FormatError(f"CSV of more than {_MAX_FIELDS} fields isn't read")
        names = [str(number) for number in range(len(fields.names))]
        wanted = [names[fields.names.index(name)] for name in self.schema.names]
        read = {name: _read_as(field.type) for name, field in zip(wanted, self.schema, strict=True)}
        self._parse = pa.csv.ParseOptions(
            delimiter=delimiter, quote_char='"', double_quote=True, newlines_in_values=True, ignore_empty_lines=False
        )
        self._convert = pa.csv.ConvertOptions(
            column_types=read,
            include_columns=wanted, null_values=_NULLS, strings_can_be_null=True, quoted_strings_can_be_null=False,
            true_values=["true", "True", "TRUE"], false_values=["false", "False", "FALSE"],
        )  # fmt: skip
        self._names = names
        # Checked before records are joined, so that none goes on in the next one.
        field = rf'(?:"(?:[^"]|"")*"|[^"\r\n{re.escape(delimiter)}]*)'
        self._record = rf"^{field}(?:{re.escape(delimiter)}{field}){{{len(names) - 1}}}$"

    def decode(self, values: pa.Array) -> Decoded:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        errors: dict[int, str] = {}
        there = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        read = self._read(values.take(pa.array(there)), there, errors)
        order = np.full(len(values), -1, np.int64)
        good_there = np.array([row for row in there.tolist() if row not in errors], np.int64)
        order[good_there] = np.arange(len(good_there))
        columns = read.take(pa.array(order, mask=order < 0)).columns if len(values) else read.columns
        for number in self._required:
            for row in np.flatnonzero(columns[number].is_null().to_numpy(zero_copy_only=False)).tolist():
                errors.setdefault(row, f"{self.schema.names[number]}: there is none, and null isn't allowed")
        if not errors:
            return Decoded(pa.RecordBatch.from_arrays(columns, schema=self.schema), None, [])
        good = pa.array(np.delete(np.arange(len(values)), list(errors)), pa.int64())
        kept = [column.take(good) for column in columns]
        return Decoded(pa.RecordBatch.from_arrays(kept, schema=self.schema), good, sorted(errors.items()))

    def _read(self, values: pa.Array, numbers: Ints, errors: dict[int, str]) -> pa.RecordBatch:
        """The rows of values, without those that have errors; `numbers` are theirs."""
        if not len(values):
            return pa.RecordBatch.from_arrays(
                [pa.array([], field.type) for field in self.schema], names=self.schema.names
            )
        try:
            return self._at_once(values)
        except (pa.ArrowException, ValueError) as error:
            if len(values) == 1:
                errors[int(numbers[0])] = f"no CSV of these columns: {_why(error)}"
                return self._read(values[:0], numbers[:0], errors)
        half = len(values) // 2
        parts = [self._read(values[:half], numbers[:half], errors), self._read(values[half:], numbers[half:], errors)]
        return pa.concat_batches(parts)

    def _at_once(self, values: pa.Array) -> pa.RecordBatch:
        """The rows of values, each of which is one record by itself.

        Raises:
            ValueError, pa.ArrowException: some aren't.
        """
        text = pc.utf8_rtrim(values.cast(pa.string()), "\r\n")
        # Arrow would leave a byte order mark out of the first record alone.
        text = pc.if_else(pc.starts_with(text, _MARK), pc.utf8_slice_codeunits(text, 1), text)
        if not pc.all(pc.match_substring_regex(text, self._record)).as_py():
            count = len(self._names)
            raise ValueError(f"it isn't one record of {count} field{'s' if count > 1 else ''}")
        whole = pa.ListArray.from_arrays(pa.array([0, len(text) + 1], pa.int32()), pa.concat_arrays([text, _LAST]))
        lines = pc.binary_join(whole, "\n")[0].as_buffer()
        table = pa.csv.read_csv(
            pa.BufferReader(lines),
            read_options=pa.csv.ReadOptions(
                column_names=self._names, use_threads=False, block_size=max(_BLOCK, lines.size + 1)
            ),
            parse_options=self._parse,
            convert_options=self._convert,
        )
        if table.num_rows != len(values):
            raise ValueError(f"{table.num_rows} records, where one should be")
        columns = [
            _made(column.combine_chunks(), field.type) for column, field in zip(table.columns, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=self.schema.names)


class CsvEncoder:
    """Writes a row as one record, without the end of the line; texts are in quotes, nulls are empty.

    Raises:
        FormatError: as `CsvDecoder`.
    """

    def __init__(self, schema: spark.StructType, delimiter: str = ",") -> None:
        check_csv(schema, delimiter)
        self._schema, self._delimiter = arrow_schema(schema), delimiter

    def encode(self, table: pa.Table | pa.RecordBatch) -> pa.Array:
        missing = [name for name in self._schema.names if name not in table.schema.names]
        if missing:
            raise ValueError(f"there's no column {', '.join(missing)}, but {', '.join(table.schema.names) or 'none'}")
        texts = [_text(_whole(table.column(name)).cast(self._schema.field(name).type)) for name in self._schema.names]
        return pc.binary_join_element_wise(*texts, self._delimiter).cast(pa.binary())


def check_csv(schema: spark.StructType, delimiter: str) -> None:
    """Refuses columns that no field of CSV is, and delimiters that can't be.

    Raises:
        FormatError: there is one.
    """
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter.isalnum() or delimiter in _NO_DELIMITERS:
        raise FormatError(
            f"delimiter={delimiter!r}: one character of ASCII; no quote, no end of line, no letter, no digit, and none "
            "of +-.:, which are in numbers and times"
        )
    for each in schema.fields:
        if isinstance(each.dataType, (spark.ArrayType, spark.MapType, spark.StructType, spark.BinaryType)):
            raise FormatError(f"column {each.name}: {each.dataType.simpleString()} is no field of CSV")


def _read_as(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_timestamp(kind) else kind


def _made(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_timestamp(kind):
        return column
    # Texts with a zone and without one in a column: the latter are UTC.
    zoned = pc.match_substring_regex(column, r"(Z|[+-]\d\d:?\d\d|[+-]\d\d)$")
    dates = pc.match_substring_regex(column, r"^[^T ]*$")
    with_zone = pc.if_else(pc.and_(zoned, pc.invert(dates)), column, None).cast(pa.timestamp("us", "UTC"))
    plain = pc.if_else(pc.and_(zoned, pc.invert(dates)), None, column).cast(pa.timestamp("us"))
    if kind.tz is None:
        if with_zone.null_count < len(with_zone):
            raise ValueError("a time with a zone, where none is wanted")
        found = plain
    else:
        found = pc.coalesce(with_zone, plain.cast(pa.timestamp("us", "UTC")))
    ends: Any = pc.min_max(found.cast(pa.int64())).as_py()
    if ends["min"] is not None and not FIRST_US <= ends["min"] <= ends["max"] <= LAST_US:
        raise ValueError("a time beyond the years 1 to 9999")
    return found


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _text(column: pa.Array) -> pa.Array:
    """A column's fields; what is null is empty."""
    kind = column.type
    if pa.types.is_string(kind):
        column = pc.binary_join_element_wise('"', pc.replace_substring(column, '"', '""'), '"', "")
    elif pa.types.is_timestamp(kind):
        column = pc.strftime(column, format="%Y-%m-%dT%H:%M:%S" + ("Z" if kind.tz else ""))
    else:
        column = column.cast(pa.string())
    return pc.fill_null(column, "")


def _why(error: Exception) -> str:
    return str(error).removeprefix("CSV parse error: ").removeprefix("In CSV ").split("\n")[0][:200]
