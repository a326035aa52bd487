"""Spark's types in Arrow."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types as spark

from kohort.spark.formats.interfaces import FormatError

FOR_INTERVALS: Final = "make a text or a number of it in a transform"
"""What to do with columns that no format has."""
_SIMPLE: Final[dict[type[spark.DataType], Any]] = {
    spark.BooleanType: pa.bool_(),
    spark.ByteType: pa.int8(),
    spark.ShortType: pa.int16(),
    spark.IntegerType: pa.int32(),
    spark.LongType: pa.int64(),
    spark.FloatType: pa.float32(),
    spark.DoubleType: pa.float64(),
    spark.StringType: pa.string(),
    spark.VarcharType: pa.string(),
    spark.CharType: pa.string(),
    spark.BinaryType: pa.binary(),
    spark.DateType: pa.date32(),
    spark.TimestampType: pa.timestamp("us", tz="UTC"),
    spark.TimestampNTZType: pa.timestamp("us"),
}


def arrow_type(kind: spark.DataType, name: str = "the column") -> pa.DataType:
    """The Arrow type that Spark exchanges columns of a type in; times with a zone are µs in UTC.

    Raises:
        FormatError: a type that no format has, as an interval.
    """
    if type(kind) in _SIMPLE:
        return _SIMPLE[type(kind)]
    if isinstance(kind, spark.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, spark.ArrayType):
        inner = arrow_type(kind.elementType, f"{name}[]")
        return pa.list_(pa.field("element", inner, nullable=kind.containsNull))
    if isinstance(kind, spark.MapType):
        key = pa.field("key", arrow_type(kind.keyType, f"{name}'s keys"), nullable=False)
        return pa.map_(key, pa.field("value", arrow_type(kind.valueType, name), nullable=kind.valueContainsNull))
    if isinstance(kind, spark.StructType):
        return pa.struct(_fields(kind, f"{name}."))
    text = kind.simpleString()
    instead = f": {FOR_INTERVALS}" if "interval" in text else ""
    raise FormatError(f"{name}: {text} can't be read or written{instead}")


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema of columns; as `arrow_type`."""
    return pa.schema(_fields(schema, ""))


def _fields(schema: spark.StructType, prefix: str) -> list[pa.Field]:
    return [
        pa.field(each.name, arrow_type(each.dataType, prefix + each.name), nullable=each.nullable)
        for each in schema.fields
    ]
