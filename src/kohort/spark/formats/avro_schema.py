"""Avro schemas: read, compared with the columns wanted, and made as Spark makes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import fastavro
from pyspark.sql import types as spark

from kohort.spark.formats.interfaces import FormatError

_MIN_DEPTH: Final = 64

_PRIMITIVE: Final[dict[type[spark.DataType], Any]] = {
    spark.BooleanType: "boolean",
    spark.ByteType: "int",
    spark.ShortType: "int",
    spark.IntegerType: "int",
    spark.LongType: "long",
    spark.FloatType: "float",
    spark.DoubleType: "double",
    spark.StringType: "string",
    spark.VarcharType: "string",
    spark.CharType: "string",
    spark.BinaryType: "bytes",
    spark.DateType: {"type": "int", "logicalType": "date"},
    spark.TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    spark.TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}


AvroSchema = dict[str, Any]
"""A record's schema, with the types that it names put in where they are used."""


def as_parsed(given: str | AvroSchema) -> AvroSchema:
    """The same, parsed if it isn't."""
    return parse(given) if isinstance(given, str) else given


def parse(text: str, references: Sequence[tuple[str, str]] = ()) -> AvroSchema:
    """A record's schema, with the types that it names put in where they are used.

    Args:
        text: the schema, as JSON.
        references: other schemas that it names: (name, text), each after those that it names itself.

    Raises:
        FormatError: it isn't a schema, or not a record's, or a type contains itself.
    """
    try:
        plain = json.loads(text)
        others = [json.loads(each) for _, each in references]
    except ValueError as error:
        raise FormatError(f"the Avro schema isn't JSON: {error}") from None
    try:
        named: dict[str, Any] = {}
        for each in others:
            fastavro.parse_schema(each, named_schemas=named, expand=True)
        schema = fastavro.parse_schema(plain, named_schemas=named, expand=True)
    except Exception as error:
        raise FormatError(f"no Avro schema: {str(error) or type(error).__name__}") from None
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise FormatError("the Avro schema is no record's: columns come from a record's fields")
    return schema


def wrapped(text: str, name: str) -> str:
    """A schema as a record's: one that is none, such as that of a number, as that of one field, as its bytes are."""
    try:
        schema = json.loads(text)
    except ValueError:
        return text  # `parse` says what is wrong
    if isinstance(schema, dict) and schema.get("type") == "record":
        return text
    return json.dumps({"type": "record", "name": "alone", "fields": [{"name": name, "type": schema}]})


def unwrapped(text: str) -> str:
    """The schema of a record's only field, for itself."""
    return json.dumps(json.loads(text)["fields"][0]["type"])


def unwrap(schema: Any) -> tuple[Any, int]:
    """The type within a union with null, and which branch null is (-1: there's no union).

    A union of anything else is given as it is.
    """
    if isinstance(schema, list):
        kinds = [_kind(each) for each in schema]
        if len(schema) == 2 and kinds.count("null") == 1:
            null = kinds.index("null")
            return schema[1 - null], null
    return schema, -1


def _kind(schema: Any) -> str:
    return "union" if isinstance(schema, list) else schema if isinstance(schema, str) else str(schema["type"])


def check_finite(schema: Any, depth: int = 0) -> int:
    """The fewest bytes that a value takes.

    Raises:
        FormatError: some few bytes could stand for values without end: a type that contains itself, or an array of
            what takes no bytes.
    """
    if depth > _MIN_DEPTH:
        raise FormatError("the Avro schema is nested too deeply")
    if isinstance(schema, list):
        return 1 + min((check_finite(each, depth + 1) for each in schema), default=0)
    if isinstance(schema, str):
        if schema not in _SIZES:
            raise FormatError(f"the Avro type {schema} contains itself: that can't be columns")
        return _SIZES[schema]
    kind = schema["type"]
    match kind:
        case "record":
            return sum(check_finite(each["type"], depth + 1) for each in schema["fields"])
        case "fixed":
            return int(schema["size"])
        case "enum":
            return 1
        case "array" | "map":
            if check_finite(schema["items" if kind == "array" else "values"], depth + 1) == 0 and kind == "array":
                raise FormatError("an Avro array of what takes no bytes could be of any length")
            return 1
    return check_finite(kind, depth + 1)


_SIZES: Final = {
    "null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1,
}  # fmt: skip


def spark_schema(schema: spark.StructType, name: str = "topLevelRecord", space: str = "") -> dict[str, Any]:
    """The Avro schema that Spark's `to_avro` writes rows with.

    Raises:
        FormatError: a type that Avro doesn't have.
    """
    full = f"{space}.{name}" if space else name
    fields = []
    for each in schema.fields:
        kind = _of(each.dataType, each.name, full)
        fields.append({"name": each.name, "type": [kind, "null"] if each.nullable else kind})
    record: dict[str, Any] = {"type": "record", "name": name, "fields": fields}
    return record | {"namespace": space} if space else record


def evolving_schema(schema: spark.StructType, name: str) -> dict[str, Any]:
    """The Avro schema of columns, to be registered: what may be null has a default, so that it can come and go.

    Raises:
        FormatError: a type that Avro doesn't have.
    """
    return _null_first(spark_schema(schema, name))  # type: ignore[no-any-return]


def _null_first(avro: Any) -> Any:
    if isinstance(avro, list):
        return ["null", *(_null_first(each) for each in avro if each != "null")]
    if isinstance(avro, str):
        return avro
    match avro["type"]:
        case "record":
            fields = [each | {"type": _null_first(each["type"])} for each in avro["fields"]]
            return avro | {
                "fields": [each | {"default": None} if isinstance(each["type"], list) else each for each in fields]
            }
        case "array":
            return avro | {"items": _null_first(avro["items"])}
        case "map":
            return avro | {"values": _null_first(avro["values"])}
    return avro


def _of(kind: spark.DataType, name: str, space: str) -> Any:
    if type(kind) in _PRIMITIVE:
        return _PRIMITIVE[type(kind)]
    match kind:
        case spark.DecimalType():
            size = 1
            while 10**kind.precision > 2 ** (8 * size - 1):
                size += 1
            return {
                "type": "fixed", "name": "fixed", "namespace": f"{space}.{name}", "size": size,
                "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale,
            }  # fmt: skip
        case spark.ArrayType():
            inner = _of(kind.elementType, name, space)
            return {"type": "array", "items": [inner, "null"] if kind.containsNull else inner}
        case spark.MapType() if isinstance(kind.keyType, spark.StringType):
            inner = _of(kind.valueType, name, space)
            return {"type": "map", "values": [inner, "null"] if kind.valueContainsNull else inner}
        case spark.StructType():
            return spark_schema(kind, name, space)
    raise FormatError(f"{name}: Avro has no {kind.simpleString()}")
