"""The columns of messages, and what is read of a message for each.

| Protocol Buffers | column |
| --- | --- |
| int32, sint32, sfixed32; uint32, fixed32 | INT; BIGINT |
| int64, sint64, sfixed64; uint64, fixed64 | BIGINT; DECIMAL(20, 0) |
| float, double, bool, string, bytes | FLOAT, DOUBLE, BOOLEAN, STRING, BINARY |
| enum | STRING, its name; the number of one that the schema lacks |
| google.protobuf.Timestamp | TIMESTAMP, to the microsecond |
| google.protobuf.StringValue and others like it | the value's, which may be null |
| message; repeated; map | STRUCT; ARRAY; MAP |

A field that can be told from one that isn't set (optional, a message, one of a oneof) is null where it isn't set.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from pyspark.sql import types as spark

from kohort.spark.formats.interfaces import FormatError
from kohort.spark.formats.times import FIRST_US, LAST_US

Read = Callable[[Any], Any]

_MAX_DEPTH: Final = 32
_TIMESTAMP: Final = "google.protobuf.Timestamp"
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_PLAIN: Final[dict[str, spark.DataType]] = {
    "int32": spark.IntegerType(),
    "int64": spark.LongType(),
    "uint32": spark.LongType(),
    "uint64": spark.DecimalType(20, 0),
    "double": spark.DoubleType(),
    "float": spark.FloatType(),
    "bool": spark.BooleanType(),
    "enum": spark.StringType(),
    "string": spark.StringType(),
    "bytes": spark.BinaryType(),
}


def columns_of(message: Any) -> spark.StructType:
    """The columns of a message's fields.

    Raises:
        FormatError: it has none, or contains itself.
    """
    found = _struct(message, 0)
    if not found.fields:
        raise FormatError(f"message {message.full_name} has no fields: columns come from a message's fields")
    return found


def reader_of(message: Any, names: list[str]) -> Read:
    """What makes a row of a message: a list of the values of these fields, None for those that it doesn't have."""
    reads = [_field_reader(message.fields_by_name[name]) if name in message.fields_by_name else None for name in names]
    return lambda value: [None if read is None else read(value) for read in reads]


def _struct(message: Any, depth: int) -> spark.StructType:
    if depth > _MAX_DEPTH:
        raise FormatError(f"message {message.full_name} contains itself, or is nested too deeply: say schema=…")
    return spark.StructType([_column(field, depth) for field in message.fields])


def _column(field: Any, depth: int) -> spark.StructField:
    if is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        kind: spark.DataType = spark.MapType(_type(key, depth), _type(value, depth), False)
        return spark.StructField(field.name, kind, False)
    if field.is_repeated:
        return spark.StructField(field.name, spark.ArrayType(_type(field, depth), False), False)
    return spark.StructField(field.name, _type(field, depth), field.has_presence)


def _type(field: Any, depth: int) -> spark.DataType:
    message = field.message_type
    if message is None:
        return _PLAIN[kind_of(field)]
    if message.full_name == _TIMESTAMP:
        return spark.TimestampType()
    if message.full_name in _WRAPPERS:
        return _PLAIN[kind_of(message.fields_by_name["value"])]
    return _struct(message, depth + 1)


def kind_of(field: Any) -> str:
    """A field's type as its values are: "int32" of sint32 and sfixed32, too."""
    kinds = {
        field.CPPTYPE_INT32: "int32", field.CPPTYPE_INT64: "int64", field.CPPTYPE_UINT32: "uint32",
        field.CPPTYPE_UINT64: "uint64", field.CPPTYPE_DOUBLE: "double", field.CPPTYPE_FLOAT: "float",
        field.CPPTYPE_BOOL: "bool", field.CPPTYPE_ENUM: "enum", field.CPPTYPE_MESSAGE: "message",
    }  # fmt: skip
    if field.cpp_type == field.CPPTYPE_STRING:
        return "bytes" if field.type == field.TYPE_BYTES else "string"
    return kinds[field.cpp_type]


def is_map(field: Any) -> bool:
    """Whether a field is a map."""
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def _field_reader(field: Any) -> Read:
    name = field.name
    if is_map(field):
        key, value = (_value_reader(field.message_type.fields_by_name[part]) for part in ("key", "value"))
        return lambda message: [(key(one), value(other)) for one, other in getattr(message, name).items()]
    read = _value_reader(field)
    if field.is_repeated:
        return lambda message: [read(each) for each in getattr(message, name)]
    if field.has_presence:
        return lambda message: read(getattr(message, name)) if message.HasField(name) else None
    return lambda message: read(getattr(message, name))


def _value_reader(field: Any) -> Read:
    message = field.message_type
    if message is None:
        match kind_of(field):
            case "enum":
                names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
                return lambda value: names.get(value, str(value))
            case "uint64":
                return Decimal
        return lambda value: value
    if message.full_name == _TIMESTAMP:
        return _micros
    if message.full_name in _WRAPPERS:
        inner = _value_reader(message.fields_by_name["value"])
        return lambda value: inner(value.value)
    reads = [(each.name, _field_reader(each)) for each in message.fields]
    return lambda value: {name: read(value) for name, read in reads}


def _micros(value: Any) -> int:
    micros: int = value.seconds * 1_000_000 + value.nanos // 1000
    if not FIRST_US <= micros <= LAST_US:
        raise ValueError(f"{value.seconds} s since 1970 is no time of the years 1 to 9999")
    return micros
