"""Rows to messages of Protocol Buffers, row by row, and the .proto of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types as spark

from kohort.spark.formats.interfaces import FormatError
from kohort.spark.formats.protobuf_columns import is_map, kind_of
from kohort.spark.formats.protobuf_schema import ProtobufSchema, message_class

_PLAIN: Final[dict[type[spark.DataType], str]] = {
    spark.BooleanType: "bool",
    spark.ByteType: "int32",
    spark.ShortType: "int32",
    spark.IntegerType: "int32",
    spark.LongType: "int64",
    spark.FloatType: "float",
    spark.DoubleType: "double",
    spark.StringType: "string",
    spark.BinaryType: "bytes",
    spark.TimestampType: "google.protobuf.Timestamp",
}


class ProtobufEncoder:
    """Writes a row as a schema's first message.

    Raises:
        FormatError: the message lacks a column.
    """

    def __init__(self, schema: spark.StructType, written: ProtobufSchema) -> None:
        self._names = schema.names
        self._times = [each.name for each in schema.fields if isinstance(each.dataType, spark.TimestampType)]
        message = written.message()
        self._class = message_class(message)
        if lacking := [name for name in self._names if name not in message.fields_by_name]:
            raise FormatError(f"message {message.full_name} has no field {', '.join(lacking)}")

    def encode(self, table: pa.Table | pa.RecordBatch) -> pa.Array:
        missing = [name for name in self._names if name not in table.schema.names]
        if missing:
            raise ValueError(f"there's no column {', '.join(missing)}, but {', '.join(table.schema.names) or 'none'}")
        values = []
        for number, row in enumerate(table.select(self._names).to_pylist()):
            message = self._class()
            try:
                _fill(message, row)
                values.append(message.SerializeToString(deterministic=True))
            except Exception as error:
                raise ValueError(f"row {number} can't be written as a message: {error}") from error
        return pa.array(values, pa.binary())


def _fill(message: Any, row: Mapping[str, Any]) -> None:
    for name, value in row.items():
        if value is None:
            continue
        field = message.DESCRIPTOR.fields_by_name[name]
        if is_map(field):
            target = getattr(message, name)
            for key, each in value.items() if isinstance(value, dict) else value:
                if isinstance(each, dict):
                    _fill(target[key], each)
                else:
                    target[key] = each
        elif field.is_repeated:
            for each in value:
                if each is None:
                    raise ValueError(f"{name}: no null can be in a repeated field")
                if field.message_type is None:
                    getattr(message, name).append(_plain(field, each))
                else:
                    _fill_message(getattr(message, name).add(), each)
        elif field.message_type is not None:
            _fill_message(getattr(message, name), value)
        else:
            setattr(message, name, _plain(field, value))


def _fill_message(message: Any, value: Any) -> None:
    message.SetInParent()
    if isinstance(value, dict):
        _fill(message, value)
    elif message.DESCRIPTOR.full_name == "google.protobuf.Timestamp":
        message.FromDatetime(value)
    else:
        message.value = value  # a wrapper's


def _plain(field: Any, value: Any) -> Any:
    kind = kind_of(field)
    if kind == "enum":
        found = field.enum_type.values_by_name.get(value)
        if found is None:
            raise ValueError(f"{field.name}: {field.enum_type.full_name} has no {value!r}")
        return found.number
    return int(value) if kind == "uint64" else value


def proto_of(columns: spark.StructType, name: str) -> str:
    """The .proto of columns: proto3, the fields numbered in their order, optional where they may be null.

    Numbers follow the columns' order, so whoever drops or moves one should give a schema instead.

    Raises:
        FormatError: a type that Protocol Buffers don't have.
    """
    body = _message(columns, name, "")
    uses = 'import "google/protobuf/timestamp.proto";\n' if "google.protobuf.Timestamp" in body else ""
    return f'syntax = "proto3";\n{uses}{body}'


def _message(columns: spark.StructType, name: str, indent: str) -> str:
    lines = [f"{indent}message {name} {{"]
    inner = indent + "  "
    for number, each in enumerate(columns.fields, 1):
        kind, repeated = each.dataType, ""
        if isinstance(kind, spark.ArrayType):
            kind, repeated = kind.elementType, "repeated "
        if isinstance(kind, spark.MapType) and not repeated:
            key, _ = _named(kind.keyType, each.name, inner)
            value, nested = _named(kind.valueType, each.name, inner)
            lines += [nested] if nested else []
            lines.append(f"{inner}map<{key}, {value}> {each.name} = {number};")
            continue
        said, nested = _named(kind, each.name, inner)
        lines += [nested] if nested else []
        plain = "optional " if each.nullable and not repeated and not nested else ""
        lines.append(f"{inner}{repeated or plain}{said} {each.name} = {number};")
    return "\n".join([*lines, f"{indent}}}"])


def _named(kind: spark.DataType, name: str, indent: str) -> tuple[str, str]:
    """A type's name, and the message that it is, to be written before."""
    if isinstance(kind, spark.StructType):
        message = f"{name[:1].upper()}{name[1:]}Message"
        return message, _message(kind, message, indent)
    if type(kind) not in _PLAIN:
        raise FormatError(f"{name}: Protocol Buffers have no {kind.simpleString()}; make it another in a transform")
    return _PLAIN[type(kind)], ""
