"""Avro: single values by the schema that wrote them, as what JSON can say.

Values and schemas come from elsewhere, so both are taken for hostile: depth and number of what is read are bounded.
fastavro isn't used, as it has no bounds: a schema that names itself crashes the process with data of 20,000 levels.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from kohort.schema_registry.value_error import ValueFault

__all__ = ["AvroSchema"]

_MOST_DEPTH: Final = 100
_MOST_PARTS: Final = 200_000
"""Values within a value: an array of nulls takes no bytes for each."""

_PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class AvroSchema:
    """A schema that values are read by.

    Args:
        text: the schema, as JSON.
        references: what it names and doesn't have itself: (name, text), each after what it names itself.

    Raises:
        ValueFault: it is no schema.
    """

    def __init__(self, text: str, references: Sequence[tuple[str, str]] = ()) -> None:
        self._named: dict[str, Mapping[str, Any]] = {}
        for _, each in references:
            self._learn(_parsed(each), "", 0)
        self._schema = _parsed(text)
        self._learn(self._schema, "", 0)

    def decode(self, data: bytes) -> Any:
        """The value that the bytes are, all of them: dicts, lists, text, numbers, None.

        Bytes are lower-case hex; decimals are text; dates and times are ISO 8601.

        Raises:
            ValueFault: they aren't such a value.
        """
        reading = _Reading(data, self._named)
        value = reading.value(self._schema, "", 0)
        if reading.at != len(data):
            raise ValueFault(f"{len(data) - reading.at} bytes are left over after the value")
        return value

    def _learn(self, schema: Any, space: str, depth: int) -> None:
        """Notes what has a name."""
        if depth > _MOST_DEPTH:
            raise ValueFault("the schema is nested too deeply")
        if isinstance(schema, list):
            for each in schema:
                self._learn(each, space, depth + 1)
        elif isinstance(schema, dict):
            kind = schema.get("type")
            if kind in ("record", "error", "enum", "fixed"):
                name = _full_name(schema, space)
                space = name.rpartition(".")[0]
                self._named[name] = schema | {"__space__": space}
                if kind in ("record", "error"):
                    for field in _fields(schema):
                        self._learn(field.get("type"), space, depth + 1)
            elif kind == "array":
                self._learn(schema.get("items"), space, depth + 1)
            elif kind == "map":
                self._learn(schema.get("values"), space, depth + 1)
            else:
                self._learn(kind, space, depth + 1)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if text in _PRIMITIVES:
            return text
        raise ValueFault("the schema isn't JSON") from None


def _full_name(schema: Mapping[str, Any], space: str) -> str:
    name = schema.get("name")
    if not isinstance(name, str):
        raise ValueFault("a type of the schema has no name")
    if "." in name:
        return name
    space = schema.get("namespace", space)
    return f"{space}.{name}" if isinstance(space, str) and space else name


def _fields(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    fields = schema.get("fields")
    if not isinstance(fields, list) or not all(isinstance(each, dict) and "name" in each for each in fields):
        raise ValueFault("a record of the schema has no list of fields with names")
    return fields


class _Reading:
    """A value that is being read.

    Attributes:
        at: the next byte.
    """

    def __init__(self, data: bytes, named: Mapping[str, Mapping[str, Any]]) -> None:
        self.at = 0
        self._data, self._named = data, named
        self._left = _MOST_PARTS
        self._simple: Mapping[str, Callable[[], Any]] = {
            "null": lambda: None,
            "boolean": self._boolean,
            "int": self._long,
            "long": self._long,
            "float": lambda: self._float("<f", 4),
            "double": lambda: self._float("<d", 8),
            "bytes": lambda: self._take(self._long()).hex(),
            "string": self._string,
        }

    def value(self, schema: Any, space: str, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise ValueFault(f"it has more than {_MOST_PARTS:,} parts")
        if depth > _MOST_DEPTH:
            raise ValueFault("it is nested too deeply")
        if isinstance(schema, str):
            if (read := self._simple.get(schema)) is not None:
                return read()
            found = self._named.get(f"{space}.{schema}" if space and "." not in schema else schema)
            found = self._named.get(schema) if found is None else found
            if found is None:
                raise ValueFault(f"the schema has no type {schema[:100]!r}")
            return self._named_value(found, depth)
        if isinstance(schema, list):
            branch = self._long()
            if not 0 <= branch < len(schema):
                raise ValueFault(f"branch {branch} of a union of {len(schema)}")
            return self.value(schema[branch], space, depth + 1)
        if not isinstance(schema, dict):
            raise ValueFault("a type of the schema is neither name, object nor list")
        kind = schema.get("type")
        match kind:
            case "record" | "error" | "enum" | "fixed":
                return self._named_value(self._named.get(_full_name(schema, space), schema), depth)
            case "array":
                return [
                    self.value(schema.get("items"), space, depth + 1) for count in self._blocks() for _ in range(count)
                ]
            case "map":
                return {
                    self._string(): self.value(schema.get("values"), space, depth + 1)
                    for count in self._blocks()
                    for _ in range(count)
                }
            case "bytes" if schema.get("logicalType") == "decimal":
                return _decimal(self._take(self._long()), schema)
            case _:
                return _logical(self.value(kind, space, depth + 1), schema.get("logicalType"))

    def _named_value(self, schema: Mapping[str, Any], depth: int) -> Any:
        space = str(schema.get("__space__", ""))
        match schema.get("type"):
            case "enum":
                symbols, at = schema.get("symbols"), self._long()
                if not isinstance(symbols, list) or not 0 <= at < len(symbols):
                    raise ValueFault(f"symbol {at} isn't one of the enum's")
                return symbols[at]
            case "fixed":
                size = schema.get("size")
                if not isinstance(size, int) or size < 0:
                    raise ValueFault("a fixed of the schema has no size")
                data = self._take(size)
                return _decimal(data, schema) if schema.get("logicalType") == "decimal" else data.hex()
            case _:
                return {str(each["name"]): self.value(each.get("type"), space, depth + 1) for each in _fields(schema)}

    def _blocks(self) -> Any:
        """The number of items in each block of an array or map."""
        while count := self._long():
            if count < 0:
                count = -count
                self._long()  # the block's size
            if count > self._left:
                raise ValueFault(f"it has more than {_MOST_PARTS:,} parts")
            yield count

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self.at:
            raise ValueFault(f"it ends at byte {len(self._data)}, where {size} bytes are wanted from {self.at} on")
        self.at += size
        return self._data[self.at - size : self.at]

    def _boolean(self) -> bool:
        return self._take(1) != b"\0"

    def _long(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
            if shift > 63:
                raise ValueFault(f"a number of more than ten bytes ends at byte {self.at}")
        return (value >> 1) ^ -(value & 1)

    def _float(self, code: str, size: int) -> float | str:
        value: float = struct.unpack(code, self._take(size))[0]
        return value if math.isfinite(value) else str(value)  # JSON has none of these

    def _string(self) -> str:
        return self._take(self._long()).decode(errors="backslashreplace")


def _decimal(data: bytes, schema: Mapping[str, Any]) -> str:
    scale = schema.get("scale", 0)
    if not isinstance(scale, int) or not 0 <= scale <= 1000 or len(data) > 1000:
        return data.hex()
    number = int.from_bytes(data, "big", signed=True)
    digits = tuple(map(int, str(abs(number))))
    return f"{Decimal((int(number < 0), digits, -scale)):f}"


def _logical(value: Any, kind: Any) -> Any:
    """A value as its logical type has it; one that is out of bounds stays a number."""
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    try:
        match kind:
            case "date":
                return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
            case "timestamp-millis" | "local-timestamp-millis":
                return _time(value * 1_000, kind)
            case "timestamp-micros" | "local-timestamp-micros":
                return _time(value, kind)
    except OverflowError:
        pass
    return value


def _time(micros: int, kind: str) -> str:
    text = (_EPOCH + timedelta(microseconds=micros)).isoformat().removesuffix("+00:00")
    return text if kind.startswith("local") else f"{text}Z"
