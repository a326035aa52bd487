"""Avro data, one a value without any header, to columns."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark

from kohort.spark.formats import avro_kernel as kernels
from kohort.spark.formats.arrow_types import arrow_schema
from kohort.spark.formats.avro_resolution import ReadField, prune, resolve
from kohort.spark.formats.avro_schema import AvroSchema, as_parsed, check_finite, spark_schema, unwrap
from kohort.spark.formats.byte_columns import Bools, booleans, byte_column, fixed, gathered
from kohort.spark.formats.interfaces import Decoded, FormatError
from kohort.spark.formats.text_kernels import is_text

_KINDS: Final = {
    "boolean": kernels.BOOLEAN, "int": kernels.INT, "long": kernels.LONG, "float": kernels.FLOAT,
    "double": kernels.DOUBLE, "bytes": kernels.BYTES, "string": kernels.BYTES, "fixed": kernels.FIXED,
    "enum": kernels.ENUM, "null": kernels.NOTHING,
}  # fmt: skip
_WIDTHS: Final = {"boolean": 1, "float": 4, "double": 8}

_WHOLE: Final = (spark.IntegerType, spark.LongType, spark.FloatType, spark.DoubleType)
_TAKEN: Final[dict[str, tuple[type[spark.DataType], ...]]] = {
    "boolean": (spark.BooleanType,),
    "int": (spark.ByteType, spark.ShortType, *_WHOLE),
    "long": (spark.LongType, spark.FloatType, spark.DoubleType),
    "float": (spark.FloatType, spark.DoubleType),
    "double": (spark.DoubleType,),
    "bytes": (spark.BinaryType,),
    "fixed": (spark.BinaryType,),
    "string": (spark.StringType, spark.VarcharType, spark.CharType),
    "enum": (spark.StringType, spark.VarcharType, spark.CharType),
    "date": (spark.DateType,),
    "timestamp-millis": (spark.TimestampType,),
    "timestamp-micros": (spark.TimestampType,),
    "local-timestamp-millis": (spark.TimestampNTZType,),
    "local-timestamp-micros": (spark.TimestampNTZType,),
}
"""Which types a column may have, by Avro's type, or its logical one where that counts."""


class AvroDecoder:
    """Reads values that are one record each, in Avro's binary encoding, all written with one schema.

    Records of plain fields, and of unions of one with null, are read by a compiled loop; those with arrays, maps,
    decimals, other unions or records within, by fastavro one after another.

    Args:
        schema: the columns wanted, by the fields' names.
        avro_schema: what the values were written with; by default, what Spark's `to_avro` writes with.
        reader: a schema to read them as, by Avro's rules (`avro_resolution`). Without one, the columns are looked up in
            what was written.
        lenient: whether columns that may be null are null where the writer has no such field, without a `reader`.

    Attributes:
        schema: of the columns.

    Raises:
        FormatError: no schema; one that lacks a column, or has it as something else; or one under which a few bytes
            could stand for values without end.
    """

    def __init__(
        self,
        schema: spark.StructType,
        avro_schema: str | AvroSchema | None = None,
        reader: AvroSchema | None = None,
        *,
        lenient: bool = False,
    ) -> None:
        self.schema = arrow_schema(schema)
        self._avro = as_parsed(json.dumps(spark_schema(schema)) if avro_schema is None else avro_schema)
        check_finite(self._avro)
        self._fields = resolve(schema, self._avro, reader)
        for each, field in zip(schema.fields, self._fields, strict=True):
            if field.written is None and reader is None and not lenient:
                names = [each["name"] for each in self._avro["fields"]]
                raise FormatError(f"the Avro schema has no field {each.name}, but {', '.join(names) or 'none'}")
        self._required = [number for number, each in enumerate(schema.fields) if not each.nullable]
        self._required_of_records = [
            number
            for number, (each, field) in enumerate(zip(schema.fields, self._fields, strict=True))
            if each.nullable and not field.nullable
        ]
        self._defaults = {
            number: _constant(kind, field.default)
            for number, (field, kind) in enumerate(zip(self._fields, self.schema, strict=True))
            if field.written is None
        }
        read = {name for name, field in zip(schema.names, self._fields, strict=True) if field.written is not None}
        self._reader = None if reader is None else prune(reader, self._avro, read)
        self._flat = _flat(self._avro, schema, self._fields)
        checks = ((each.name, _nulls_within(each.dataType)) for each in schema.fields)
        self._nulls = [(name, check) for name, check in checks if check is not None]

    def decode(self, values: pa.Array) -> Decoded:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        columns, errors = self._one_by_one(values) if self._flat is None else self._flat.read(values)
        for number, default in self._defaults.items():
            rows = pa.array(np.zeros(len(values), np.int64), mask=values.is_null().to_numpy(zero_copy_only=False))
            columns[number] = default.take(rows)
        batch = pa.RecordBatch.from_arrays(columns, names=self.schema.names)
        for number in self._required:
            self._check_there(batch, number, batch.column(number).is_null(), errors)
        for number in self._required_of_records:
            self._check_there(batch, number, pc.and_(batch.column(number).is_null(), values.is_valid()), errors)
        if not errors:
            return Decoded(pa.RecordBatch.from_arrays(batch.columns, schema=self.schema), None, [])
        good = np.ones(len(values), np.bool_)
        good[list(errors)] = False
        rows = pa.array(np.flatnonzero(good), pa.int64())
        kept = pa.RecordBatch.from_arrays(batch.take(rows).columns, schema=self.schema)
        return Decoded(kept, rows, sorted(errors.items()))

    def _check_there(self, batch: pa.RecordBatch, number: int, lacking: pa.Array, errors: dict[int, str]) -> None:
        if batch.column(number).null_count:
            for row in np.flatnonzero(lacking.to_numpy(zero_copy_only=False)).tolist():
                errors.setdefault(row, f"{self.schema.names[number]}: there is none, and null isn't allowed")

    def _one_by_one(self, values: pa.Array) -> tuple[list[pa.Array], dict[int, str]]:
        nothing: dict[str, Any] = dict.fromkeys(self.schema.names)
        rows: list[dict[str, Any]] = []
        errors: dict[int, str] = {}
        for number, value in enumerate(values.to_pylist()):
            row = nothing
            if value is not None:
                try:
                    source = io.BytesIO(value)
                    row = fastavro.schemaless_reader(source, self._avro, self._reader)  # type: ignore[assignment]
                    if source.tell() != len(value):
                        raise ValueError(f"{len(value) - source.tell()} {kernels.FAULTS[-1]}")
                    for name, forbidden in self._nulls:
                        if (found := row.get(name)) is not None and forbidden(found):
                            raise ValueError(f"{name}: there is a null within, where none is allowed")
                except Exception as error:
                    row = nothing
                    why = kernels.FAULTS[1] if isinstance(error, EOFError) else str(error) or type(error).__name__
                    errors[number] = f"no Avro of this schema: {why}"
            rows.append(row)
        return [self._made(field, [row.get(field.name) for row in rows], errors) for field in self.schema], errors

    def _made(self, field: pa.Field, column: list[Any], errors: dict[int, str]) -> pa.Array:
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


class _Flat:
    """How to read records without anything nested that is wanted."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.kinds: list[int] = []
        self.columns: list[int] = []
        self.nulls: list[int] = []
        self.widths: list[int] = []
        self.wanted: list[tuple[Any, Any, pa.DataType]] = []
        """Of the columns: the writer's type (None: it has no such field), the reader's, and Arrow's."""

    def read(self, values: pa.Array) -> tuple[list[pa.Array], dict[int, str]]:
        at = byte_column(values)
        rows, count = len(at.starts), len(self.wanted)
        there = np.zeros((count, rows), np.bool_)
        starts, sizes = np.empty((count, rows), np.int32), np.empty((count, rows), np.int32)
        longs = np.empty((count, rows), np.int64)
        faults, fault_fields = np.zeros(rows, np.int8), np.zeros(rows, np.int32)
        kernels.read_records(
            at.data, at.starts, at.sizes, at.there, np.array(self.kinds, np.int8), np.array(self.columns, np.int32),
            np.array(self.nulls, np.int8), np.array(self.widths, np.int64), there, starts, sizes, longs,
            faults, fault_fields,
        )  # fmt: skip
        errors: dict[int, str] = {}
        for row in np.flatnonzero(faults).tolist():
            field = "" if faults[row] == len(kernels.FAULTS) - 1 else f"{self.names[fault_fields[row]]}: "
            errors[row] = f"no Avro of this schema: {field}{kernels.FAULTS[faults[row]]}"
        there[:, faults != 0] = False
        arrays = [
            self._column(number, at.data, there[number], starts[number], sizes[number], longs[number], errors)
            for number in range(count)
        ]
        return arrays, errors

    def _column(
        self, number: int, data: Any, there: Bools, starts: Any, sizes: Any, longs: Any, errors: dict[int, str]
    ) -> pa.Array:
        avro, reader, kind = self.wanted[number]
        if avro is None:
            return pa.nulls(len(there), kind)
        plain = _plain(avro)
        # Who wrote milliseconds meant them, whatever the reader's unit.
        logical = (_logical(avro) or _logical(reader)) if pa.types.is_temporal(kind) else ""
        if plain in ("string", "bytes", "fixed"):
            if pa.types.is_string(kind):
                good = np.ones(len(there), np.bool_)
                is_text(data, starts, np.where(there, sizes, 0), good)
                for row in np.flatnonzero(~good).tolist():
                    errors.setdefault(row, f"no Avro of this schema: {self._name(number)}: not UTF-8")
                there = there & good
            return gathered(kind, data, starts, sizes, there)
        if plain == "enum":
            return self._symbols(number, avro["symbols"], reader, there, longs, errors)
        if plain == "boolean":
            return booleans((longs != 0) & there, there)
        if plain == "double":
            return fixed(kind, longs.view(np.float64), there)
        if plain == "float":
            numbers = longs.astype(np.uint32).view(np.float32)
            return fixed(pa.float32(), numbers, there).cast(kind)
        bounds = _BOUNDS.get(logical) or _BOUNDS.get(str(kind))
        if bounds is not None:
            large = there & ((longs < bounds[0]) | (longs > bounds[1]))
            for row in np.flatnonzero(large).tolist():
                errors.setdefault(row, f"{self._name(number)}: {longs[row]} doesn't fit {kind}")
            there = there & ~large
        if logical.endswith("millis"):
            longs = np.where(there, longs, 0) * 1000
        width = _WIDE.get(str(kind), np.dtype(np.int64))
        return fixed(kind, np.where(there, longs, 0).astype(width, copy=False), there)

    def _symbols(
        self, number: int, written: list[str], reader: Any, there: Bools, longs: Any, errors: dict[int, str]
    ) -> pa.Array:
        known = [each if each in reader["symbols"] else reader.get("default") for each in written]
        strange = there & np.array([each is None for each in known], np.bool_)[np.where(there, longs, 0)]
        for row in np.flatnonzero(strange).tolist():
            errors.setdefault(row, f"{self._name(number)}: the reader's schema has no symbol {written[longs[row]]}")
        indices = fixed(pa.int32(), np.where(there, longs, 0).astype(np.int32), there & ~strange)
        return pc.take(pa.array(known, pa.string()), indices)

    def _name(self, number: int) -> str:
        return self.names[self.columns.index(number)]


_FIRST_DAY: Final = -719_162
_LAST_DAY: Final = 2_932_896
_DAY_MS: Final = 86_400_000

_BOUNDS: Final = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "date": (_FIRST_DAY, _LAST_DAY),
    **dict.fromkeys(
        ("timestamp-millis", "local-timestamp-millis"), (_FIRST_DAY * _DAY_MS, (_LAST_DAY + 1) * _DAY_MS - 1)
    ),
    **dict.fromkeys(
        ("timestamp-micros", "local-timestamp-micros"),
        (_FIRST_DAY * _DAY_MS * 1000, (_LAST_DAY + 1) * _DAY_MS * 1000 - 1),
    ),
}
"""What fits, by logical type or Arrow's; times are those of the years 1 to 9999, as in Python."""

_WIDE: Final[dict[str, np.dtype[Any]]] = {
    "int8": np.dtype(np.int8),
    "int16": np.dtype(np.int16),
    "int32": np.dtype(np.int32),
    "date32[day]": np.dtype(np.int32),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}


def _logical(avro: Any) -> str:
    return str(avro.get("logicalType", "")) if isinstance(avro, dict) else ""


def _nulls_within(kind: spark.DataType) -> Callable[[Any], bool] | None:
    """What says whether a value has a null within that its type doesn't allow; None if it allows all of them."""

    def of(kind: spark.DataType, nullable: bool) -> Callable[[Any], bool] | None:
        within = _nulls_within(kind)
        if within is None:
            return None if nullable else lambda value: value is None
        return lambda value: not nullable if value is None else within(value)

    match kind:
        case spark.ArrayType():
            element = of(kind.elementType, kind.containsNull)
            return None if element is None else lambda value: any(map(element, value))
        case spark.MapType():
            one = of(kind.valueType, kind.valueContainsNull)
            return None if one is None else lambda value: any(map(one, value.values()))
        case spark.StructType():
            fields = [(each.name, of(each.dataType, each.nullable)) for each in kind.fields]
            checks = [(name, check) for name, check in fields if check is not None]
            return None if not checks else lambda value: any(check(value.get(name)) for name, check in checks)
    return None


def _constant(field: pa.Field, value: Any) -> pa.Array:
    """A column of one row with a default.

    Raises:
        FormatError: the column can't hold it.
    """
    try:
        return pa.array([value], field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise FormatError(
            f"column {field.name}: its default in Avro, {value!r}, can't be {field.type}: {error}"
        ) from None


def _flat(avro: AvroSchema, schema: spark.StructType, fields: list[ReadField]) -> _Flat | None:
    """How to read it without nesting; None if there is some.

    Raises:
        FormatError: a column is something else in Avro.
    """
    flat, nested = _Flat(), False
    numbers = {field.written: number for number, field in enumerate(fields) if field.written is not None}
    if len(numbers) < sum(field.written is not None for field in fields):
        nested = True  # one field for two columns
    arrow = arrow_schema(schema)
    flat.wanted = [(None, "null", pa.null() if field.written else arrow.field(number).type)
                   for number, field in enumerate(fields)]  # fmt: skip
    for number, field in enumerate(fields):
        if field.written is not None:
            nested |= _check_column(schema.fields[number], field.avro)
    for each in avro["fields"]:
        name, column = each["name"], numbers.get(each["name"], -1)
        kind, null = unwrap(each["type"])
        plain = _plain(kind)
        if plain not in _KINDS or (column >= 0 and (_logical(kind) == "decimal" or plain == "null")):
            nested = True
            continue
        if column >= 0:
            flat.wanted[column] = kind, fields[column].avro, arrow.field(column).type
        flat.names.append(name)
        flat.kinds.append(_KINDS[plain])
        flat.columns.append(column)
        flat.nulls.append(null)
        width = kind["size"] if plain == "fixed" else len(kind["symbols"]) if plain == "enum" else _WIDTHS.get(plain, 0)
        flat.widths.append(width)
    return None if nested else flat


def _plain(avro: Any) -> str:
    return avro if isinstance(avro, str) else "" if isinstance(avro, list) else str(avro["type"])


def _check_column(column: spark.StructField, avro: Any) -> bool:
    """Whether a column's type in Avro is nested.

    Raises:
        FormatError: the column is something else.
    """
    plain, logical = _plain(avro), _logical(avro)
    if plain not in _KINDS or logical == "decimal" or plain == "null":
        return True
    if not isinstance(column.dataType, _TAKEN.get(logical, _TAKEN[plain])):
        there = f"{plain} ({logical})" if logical else plain
        raise FormatError(f"column {column.name}: Avro has {there}, the schema wants {column.dataType.simpleString()}")
    return False
