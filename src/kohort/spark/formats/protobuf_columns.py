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

from collections.abc import Callable, Collection
from decimal import Decimal
from typing import Any, Final

from pyspark.sql import types as spark

from kohort.spark.formats.interfaces import FormatError
from kohort.spark.formats.times import FIRST_US, LAST_US

Read = Callable[[Any], Any]

_MAX_DEPTH: Final = 32
_MAX_COLUMNS: Final = 10_000
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


def columns_of(message: Any, names: Collection[str] | None = None) -> spark.StructType:
    """The columns of a message's fields.

    Args:
        message: its descriptor.
        names: the fields that matter; what the others are is not looked at. None for all.

    Raises:
        FormatError: it has none, they contain themselves, or they are too many.
    """
    if not message.fields:
        raise FormatError(f"message {message.full_name} has no fields: columns come from a message's fields")
    return _Columns(message).struct(message, (), names)


def reader_of(message: Any, names: list[str]) -> Read:
    """What makes a row of a message: a list of the values of these fields, None for those that it doesn't have."""
    reads = [_field_reader(message.fields_by_name[name]) if name in message.fields_by_name else None for name in names]
    return lambda value: [None if read is None else read(value) for read in reads]


class _Columns:
    """A message's columns. A few messages that are each other's fields many times are millions of them: so they count.

    Args:
        message: the one around all others.
    """

    def __init__(self, message: Any) -> None:
        self._name = message.full_name
        self._count = 0

    def struct(self, message: Any, around: tuple[str, ...], names: Collection[str] | None = None) -> spark.StructType:
        if message.full_name in around or len(around) > _MAX_DEPTH:
            raise FormatError(f"message {message.full_name} contains itself, or is nested too deeply: say schema=…")
        around = (*around, message.full_name)
        fields = [field for field in message.fields if names is None or field.name in names]
        return spark.StructType([self._column(field, around) for field in fields])

    def _column(self, field: Any, around: tuple[str, ...]) -> spark.StructField:
        self._count += 1
        if self._count > _MAX_COLUMNS:
            raise FormatError(
                f"message {self._name} has more than {_MAX_COLUMNS:,} fields, with those of its messages: say schema=…"
            )
        if is_map(field):
            key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            kind: spark.DataType = spark.MapType(self._type(key, around), self._type(value, around), False)
            return spark.StructField(field.name, kind, False)
        if field.is_repeated:
            return spark.StructField(field.name, spark.ArrayType(self._type(field, around), False), False)
        return spark.StructField(field.name, self._type(field, around), field.has_presence)

    def _type(self, field: Any, around: tuple[str, ...]) -> spark.DataType:
        message = field.message_type
        if message is None:
            return _PLAIN[kind_of(field)]
        if message.full_name == _TIMESTAMP:
            return spark.TimestampType()
        if _is_wrapper(message):
            return _PLAIN[kind_of(message.fields_by_name["value"])]
        return self.struct(message, around)


def _is_wrapper(message: Any) -> bool:
    """Whether it is one of Google's wrappers; a schema may have something else under such a name."""
    value = message.fields_by_name.get("value") if message.full_name in _WRAPPERS else None
    return value is not None and value.message_type is None and not value.is_repeated


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
    if _is_wrapper(message):
        inner = _value_reader(message.fields_by_name["value"])
        return lambda value: inner(value.value)
    reads = [(each.name, _field_reader(each)) for each in message.fields]
    return lambda value: {name: read(value) for name, read in reads}


def _micros(value: Any) -> int:
    micros: int = value.seconds * 1_000_000 + value.nanos // 1000
    if not FIRST_US <= micros <= LAST_US:
        raise ValueError(f"{value.seconds} s since 1970 is no time of the years 1 to 9999")
    return micros
