"""JSON Schema: the columns that a schema's objects have, and the schema of columns.

Values are read by their columns, as JSON is without a schema: they aren't validated.
"""

from __future__ import annotations

import json
from typing import Any, Final

from pyspark.sql import types as spark

from kohort.spark.formats.interfaces import FormatError

_MAX_DEPTH: Final = 64
_MOST_PARTS: Final = 10_000

_TYPES: Final[dict[str, spark.DataType]] = {
    "string": spark.StringType(),
    "integer": spark.LongType(),
    "number": spark.DoubleType(),
    "boolean": spark.BooleanType(),
}
_FORMATS: Final[dict[str, spark.DataType]] = {"date-time": spark.TimestampType(), "date": spark.DateType()}
_WRITTEN: Final[dict[type[spark.DataType], dict[str, Any]]] = {
    spark.BooleanType: {"type": "boolean"},
    spark.ByteType: {"type": "integer"},
    spark.ShortType: {"type": "integer"},
    spark.IntegerType: {"type": "integer"},
    spark.LongType: {"type": "integer"},
    spark.FloatType: {"type": "number"},
    spark.DoubleType: {"type": "number"},
    spark.DecimalType: {"type": "number"},
    spark.StringType: {"type": "string"},
    spark.BinaryType: {"type": "string", "contentEncoding": "base64"},
    spark.DateType: {"type": "string", "format": "date"},
    spark.TimestampType: {"type": "string", "format": "date-time"},
    spark.TimestampNTZType: {"type": "string"},
}


class _Root:
    """A whole schema, and how many of its parts have been read: by references, a small one may have any number."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self._read = 0

    def count(self) -> None:
        """Another part.

        Raises:
            FormatError: there are too many.
        """
        self._read += 1
        if self._read > _MOST_PARTS:
            raise FormatError(f"the JSON Schema has more than {_MOST_PARTS:,} parts: say schema=… with the columns")


def columns_of(text: str) -> spark.StructType:
    """The columns of an object's properties; those that aren't required, or may be null, are nullable.

    Raises:
        FormatError: it is no schema of an object, or has a property that can't be a column, as one of several types.
    """
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the JSON Schema isn't JSON: {error}") from None
    kind, _ = _type(schema, _Root(schema), "", 0)
    if not isinstance(kind, spark.StructType):
        raise FormatError("the JSON Schema is no object's with properties: columns come from an object's properties")
    return kind


def schema_of(columns: spark.StructType, title: str) -> str:
    """The JSON Schema of columns as JSON has them, where nothing else may be.

    Raises:
        FormatError: a type that it doesn't have.
    """
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "title": title}
    return json.dumps(schema | _object(columns))


def _type(schema: Any, root: _Root, path: str, depth: int) -> tuple[spark.DataType, bool]:
    """A schema's type, and whether null is one of its values."""
    root.count()
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        raise _no_column(path)
    if "$ref" in schema:
        return _type(_referred(schema["$ref"], root, path), root, path, depth + 1)
    for union in ("oneOf", "anyOf"):
        if isinstance(schema.get(union), list):
            others = [each for each in schema[union] if each != {"type": "null"}]
            if len(others) != 1:
                raise _no_column(path)
            kind, null = _type(others[0], root, path, depth + 1)
            return kind, null or len(others) < len(schema[union])
    named = schema.get("type")
    kinds = named if isinstance(named, list) else [named]
    plain = [each for each in kinds if each != "null"]
    null = len(plain) < len(kinds)
    if len(plain) != 1 or not isinstance(plain[0], str | None):
        raise _no_column(path)
    match plain[0]:
        case "string":
            if schema.get("contentEncoding") == "base64":
                return spark.BinaryType(), null
            return _FORMATS.get(str(schema.get("format")), spark.StringType()), null
        case "array":
            items, may_be_null = _type(schema.get("items"), root, f"{path}[]", depth + 1)
            return spark.ArrayType(items, may_be_null), null
        case "object" | None if isinstance(schema.get("properties"), dict):
            return _struct(schema, root, path, depth), null
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            values, may_be_null = _type(schema["additionalProperties"], root, path, depth + 1)
            return spark.MapType(spark.StringType(), values, may_be_null), null
    if plain[0] not in _TYPES:
        raise _no_column(path)
    return _TYPES[plain[0]], null


def _struct(schema: dict[str, Any], root: _Root, path: str, depth: int) -> spark.StructType:
    required = schema["required"] if isinstance(schema.get("required"), list) else []
    fields = []
    for name, each in schema["properties"].items():
        kind, null = _type(each, root, f"{path}.{name}" if path else name, depth + 1)
        fields.append(spark.StructField(name, kind, null or name not in required))
    return spark.StructType(fields)


def _referred(reference: Any, root: _Root, path: str) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise FormatError(f"property {path}: {reference!r} is another document, which isn't looked up: say schema=…")
    found = root.schema
    for part in filter(None, reference[1:].split("/")):
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found


def _no_column(path: str) -> FormatError:
    what = f"property {path}" if path else "the JSON Schema"
    return FormatError(f"{what} has no one type that a column could have: say schema=… with the columns that you want")


def _object(columns: spark.StructType) -> dict[str, Any]:
    properties = {each.name: _of(each.dataType, each.name, null=each.nullable) for each in columns.fields}
    required = [each.name for each in columns.fields if not each.nullable]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _of(kind: spark.DataType, name: str, *, null: bool) -> dict[str, Any]:
    match kind:
        case spark.ArrayType():
            found: dict[str, Any] = {"type": "array", "items": _of(kind.elementType, name, null=kind.containsNull)}
        case spark.MapType():
            values = _of(kind.valueType, name, null=kind.valueContainsNull)
            found = {"type": "object", "additionalProperties": values}
        case spark.StructType():
            found = _object(kind)
        case _ if type(kind) in _WRITTEN:
            found = _WRITTEN[type(kind)]
        case _:
            raise FormatError(f"{name}: JSON Schema has no {kind.simpleString()}")
    return {"oneOf": [{"type": "null"}, found]} if null else found
