"""Protocol Buffers: single messages by their schema's text, as what JSON can say; or without a schema, by numbers.

Values come from elsewhere, so they are taken for hostile: depth and number of what is read are bounded.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any, Final

from kohort.schema_registry.protobuf_text import (
    SCALARS,
    ProtobufEnum,
    ProtobufField,
    ProtobufMessage,
    ProtobufSchema,
)
from kohort.schema_registry.value_error import ValueFault
from kohort.schema_registry.well_known import read_as_known

__all__ = ["decode_message", "message_indexes"]

_MOST_DEPTH: Final = 100
_MOST_PARTS: Final = 200_000
_MOST_INDEXES: Final = 64

_VARINT, _FIXED64, _SIZED, _START, _END, _FIXED32 = range(6)

_FIXED: Final[Mapping[str, tuple[int, str]]] = {
    "double": (_FIXED64, "<d"),
    "float": (_FIXED32, "<f"),
    "fixed64": (_FIXED64, "<Q"),
    "fixed32": (_FIXED32, "<I"),
    "sfixed64": (_FIXED64, "<q"),
    "sfixed32": (_FIXED32, "<i"),
}


def message_indexes(data: bytes) -> tuple[list[int], int]:
    """The indexes that a registry's serializer writes before a message, and where the message begins.

    Raises:
        ValueFault: there are none.
    """
    count, at = _zigzag(data, 0)
    if count == 0:
        return [0], at
    if not 0 < count <= _MOST_INDEXES:
        raise ValueFault(f"it has {count} indexes of messages before the message")
    found = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        found.append(index)
    return found, at


def decode_message(data: bytes, schema: ProtobufSchema, message: ProtobufMessage) -> dict[str, Any]:
    """The fields that are there, by name, in the order of the schema's; those it doesn't have are named `#7`.

    Bytes are lower-case hex; Google's Timestamp and Duration are text, as in Protocol Buffers' own JSON; enums are the
    names of their values, numbers where they have none.

    Raises:
        ValueFault: the bytes aren't such a message.
    """
    return _Reading(data, schema).message(message, 0, len(data), 0)[0]


class _Reading:
    def __init__(self, data: bytes, schema: ProtobufSchema) -> None:
        self._data, self._schema = data, schema
        self._left = _MOST_PARTS

    def message(
        self, message: ProtobufMessage, at: int, end: int, depth: int, group: int | None = None
    ) -> tuple[dict[str, Any], int]:
        """A message's fields, and where it ends: at `end`, or a group at its tag."""
        if depth > _MOST_DEPTH:
            raise ValueFault("it is nested too deeply")
        found: dict[str, Any] = {}
        unknown: dict[str, list[Any]] = {}
        while at < end:
            start = at
            tag, at = _varint(self._data, at, end)
            number, wire = tag >> 3, tag & 7
            if wire == _END:
                if number != group:
                    raise ValueFault(f"a group ends at byte {start}, where none has begun")
                return _in_order(found, unknown, message), at
            if not number:
                raise ValueFault(f"field 0 at byte {start}")
            self._count()
            field = message.fields.get(number)
            if field is None or not self._fits(field, wire):
                value, at = self._unknown(number, wire, at, end, depth)
                name = f"#{number}" if field is None else f"{field.name} (as something else)"
                unknown.setdefault(name, []).append(value)
                continue
            at = self._field(found, field, wire, at, end, depth)
        if group is not None:
            raise ValueFault("a group doesn't end")
        return _in_order(found, unknown, message), at

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise ValueFault(f"it has more than {_MOST_PARTS:,} parts")

    def _fits(self, field: ProtobufField, wire: int) -> bool:
        kind = self._kind(field)
        if wire == kind:
            return True
        return wire == _SIZED and field.repeated and not field.key and kind in (_VARINT, _FIXED32, _FIXED64)

    def _kind(self, field: ProtobufField) -> int:
        if field.key:
            return _SIZED
        if field.group:
            return _START
        if field.type in _FIXED:
            return _FIXED[field.type][0]
        if field.type in SCALARS:
            return _SIZED if field.type in ("string", "bytes") else _VARINT
        return _VARINT if isinstance(self._schema.find(field.type, field.scope), ProtobufEnum) else _SIZED

    def _field(self, found: dict[str, Any], field: ProtobufField, wire: int, at: int, end: int, depth: int) -> int:
        """Takes a field's value in, and says where it ends."""
        if wire == _SIZED:
            size, at = _varint(self._data, at, end)
            stop = at + size
            if stop > end:
                raise ValueFault(f"field {field.name} wants {size} bytes from byte {at} on, and {end - at} are there")
            if field.key:
                self._entry(found, field, at, stop, depth)
            elif self._kind(field) != _SIZED:  # packed
                values = found.setdefault(field.name, [])
                while at < stop:
                    self._count()
                    value, at = self._number(field, at, stop)
                    values.append(value)
            else:
                _put(found, field, self._sized(field, at, stop, depth))
            return stop
        if wire == _START:
            inner = self._schema.find(field.type, field.scope)
            if not isinstance(inner, ProtobufMessage):
                raise ValueFault(f"the schema has no message {field.type}")
            value, at = self.message(inner, at, end, depth + 1, field.number)
        else:
            value, at = self._number(field, at, end)
        _put(found, field, value)
        return at

    def _entry(self, found: dict[str, Any], field: ProtobufField, at: int, end: int, depth: int) -> None:
        entry = ProtobufMessage("")
        entry.fields[1] = ProtobufField("key", 1, field.key, False, "", field.scope)
        entry.fields[2] = ProtobufField("value", 2, field.type, False, "", field.scope)
        pair, _ = self.message(entry, at, end, depth + 1)
        key = pair.get("key", "" if field.key == "string" else False if field.key == "bool" else 0)
        found.setdefault(field.name, {})[_key_text(key)] = pair.get("value")

    def _sized(self, field: ProtobufField, at: int, end: int, depth: int) -> Any:
        if field.type == "string":
            return self._data[at:end].decode(errors="backslashreplace")
        inner = None if field.type == "bytes" else self._schema.find(field.type, field.scope)
        if isinstance(inner, ProtobufMessage):
            return read_as_known(inner.name, self.message(inner, at, end, depth + 1)[0])
        return self._data[at:end].hex()  # of a file that isn't there, too

    def _number(self, field: ProtobufField, at: int, end: int) -> tuple[Any, int]:
        if (fixed := _FIXED.get(field.type)) is not None:
            size = struct.calcsize(fixed[1])
            if at + size > end:
                raise ValueFault(f"field {field.name} wants {size} bytes from byte {at} on, and {end - at} are there")
            value = struct.unpack_from(fixed[1], self._data, at)[0]
            return (str(value) if isinstance(value, float) and not math.isfinite(value) else value), at + size
        number, at = _varint(self._data, at, end)
        match field.type:
            case "bool":
                return number != 0, at
            case "uint32":
                return number & 0xFFFF_FFFF, at
            case "uint64":
                return number, at
            case "sint32" | "sint64":
                return (number >> 1) ^ -(number & 1), at
            case "int64":
                return _signed(number, 64), at
            case _:  # int32, and enums
                value = _signed(number & 0xFFFF_FFFF, 32)
                named = None if field.type in SCALARS else self._schema.find(field.type, field.scope)
                return (named.values.get(value, value) if isinstance(named, ProtobufEnum) else value), at

    def _unknown(self, number: int, wire: int, at: int, end: int, depth: int) -> tuple[Any, int]:
        """A field that the schema doesn't have: a number, or bytes in hex; of a group its fields."""
        match wire:
            case 0:
                return _varint(self._data, at, end)
            case 1 | 5:
                stop = at + (8 if wire == _FIXED64 else 4)
            case 2:
                size, at = _varint(self._data, at, end)
                stop = at + size
            case 3:
                return self.message(ProtobufMessage(""), at, end, depth + 1, number)
            case _:
                raise ValueFault(f"field {number} has wire type {wire}, which is none")
        if stop > end:
            raise ValueFault(f"field {number} wants {stop - at} bytes from byte {at} on, and {end - at} are there")
        return self._data[at:stop].hex(), stop


def _put(found: dict[str, Any], field: ProtobufField, value: Any) -> None:
    if field.repeated:
        found.setdefault(field.name, []).append(value)
    elif isinstance(value, dict) and isinstance(found.get(field.name), dict):
        found[field.name] |= value  # parts of a message that came apart
    else:
        found[field.name] = value


def _in_order(found: dict[str, Any], unknown: dict[str, list[Any]], message: ProtobufMessage) -> dict[str, Any]:
    """The fields in the schema's order, then those that it doesn't have: lists of those that come more than once."""
    known = {each.name: found[each.name] for each in message.fields.values() if each.name in found}
    return known | {name: values[0] if len(values) == 1 else values for name, values in unknown.items()}


def _key_text(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _signed(number: int, bits: int) -> int:
    return number - (1 << bits) if number >> (bits - 1) & 1 else number


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    start = at
    while True:
        if at >= end:
            raise ValueFault(f"it ends at byte {end}, in the midst of a number that begins at {start}")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        if shift > 63:
            raise ValueFault(f"a number of more than ten bytes begins at byte {start}")


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at, len(data))
    return (number >> 1) ^ -(number & 1), at
