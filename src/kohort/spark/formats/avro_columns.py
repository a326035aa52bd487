"""The columns that an Avro schema has, in Spark's types."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import types as spark

from kohort.spark.formats.avro_schema import AvroSchema, unwrap
from kohort.spark.formats.interfaces import FormatError

_PLAIN: Final[dict[str, spark.DataType]] = {
    "boolean": spark.BooleanType(),
    "int": spark.IntegerType(),
    "long": spark.LongType(),
    "float": spark.FloatType(),
    "double": spark.DoubleType(),
    "bytes": spark.BinaryType(),
    "fixed": spark.BinaryType(),
    "string": spark.StringType(),
    "enum": spark.StringType(),
}
_LOGICAL: Final[dict[str, spark.DataType]] = {
    "date": spark.DateType(),
    "timestamp-millis": spark.TimestampType(),
    "timestamp-micros": spark.TimestampType(),
    "local-timestamp-millis": spark.TimestampNTZType(),
    "local-timestamp-micros": spark.TimestampNTZType(),
}


def columns_of(schema: AvroSchema) -> spark.StructType:
    """The columns of a record's fields; those that are unions with null may be null.

    Raises:
        FormatError: a field that can't be one, as a union of a string and a number.
    """
    return spark.StructType([_field(each["name"], each["type"], each["name"]) for each in schema["fields"]])


def _field(name: str, avro: Any, path: str) -> spark.StructField:
    kind, null = unwrap(avro)
    return spark.StructField(name, _type(kind, path), null >= 0)


def _type(avro: Any, path: str) -> spark.DataType:
    if isinstance(avro, list):
        raise FormatError(
            f"field {path} is a union of several types, which no column is: say schema=… with the columns that you want"
        )
    plain = avro if isinstance(avro, str) else avro["type"]
    logical = "" if isinstance(avro, str) else avro.get("logicalType", "")
    if logical == "decimal":
        return spark.DecimalType(int(avro["precision"]), int(avro.get("scale", 0)))
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    match plain:
        case "array":
            items, null = unwrap(avro["items"])
            return spark.ArrayType(_type(items, f"{path}[]"), null >= 0)
        case "map":
            values, null = unwrap(avro["values"])
            return spark.MapType(spark.StringType(), _type(values, path), null >= 0)
        case "record":
            fields = [_field(each["name"], each["type"], f"{path}.{each['name']}") for each in avro["fields"]]
            return spark.StructType(fields)
    if plain not in _PLAIN:
        raise FormatError(f"field {path} is {plain}, which no column is: say schema=… with the columns that you want")
    return _PLAIN[plain]
