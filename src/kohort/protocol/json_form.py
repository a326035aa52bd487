"""Messages as JSON with Kafka's field names, for people and test vectors.

    {"ThrottleTimeMs": 0, "Groups": [{"GroupId": "orders", "AssignmentEpoch": 12, …}]}

Ids are UUIDs with hyphens, bytes and records hex digits (as for `kohort wire decode`), and numbers that JSON lacks
"NaN", "Infinity" and "-Infinity". Unknown tagged fields are under "UnknownTags" by tag, as hex.
"""

from __future__ import annotations

import difflib
import math
import re
import uuid
from typing import Any, TypeVar

from kohort.protocol.errors import ProtocolError, shown
from kohort.protocol.message import Message
from kohort.protocol.schema import Array, Field, Scalar, Struct, StructType, Type

__all__ = ["from_json", "to_json"]

M = TypeVar("M", bound=Message)

UNKNOWN_TAGS = "UnknownTags"


def to_json(message: Message, version: int) -> dict[str, Any]:
    """Returns the message's fields in a version, as objects for `json.dumps`."""
    return _struct_to_json(message, version)


def _struct_to_json(value: Struct, version: int) -> dict[str, Any]:
    shown = {
        field.name: _to_json(field.type, getattr(value, field.attr), version)
        for field in value.__wire_fields__
        if field.in_version(version)
    }
    if value.unknown_tags:
        shown[UNKNOWN_TAGS] = {str(tag): raw.hex() for tag, raw in value.unknown_tags.items()}
    return shown


def _to_json(kind: Type, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(kind, StructType):
        return _struct_to_json(value, version)
    if isinstance(kind, Array):
        return [_to_json(kind.element, item, version) for item in value]
    if kind.name == "uuid":
        return str(value)
    if kind.name in ("bytes", "records"):
        return bytes(value).hex()
    if kind.name == "float64" and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def from_json(cls: type[M], version: int, value: Any) -> M:
    """Makes a message of JSON objects; missing fields get their defaults.

    Raises:
        UnsupportedVersionError: no such version.
        ProtocolError: an unknown field, or a value of the wrong kind; `path` names it, as "Groups[0].GroupEpoch".
    """
    cls.__message__.check_version(version)
    made = _Reader(cls, version).struct(cls, value)
    assert isinstance(made, cls)
    return made


class _Reader:
    """Walks JSON along a declaration."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.name = cls.__message__.name
        self.version = version

    def fault(self, path: str, reason: str) -> ProtocolError:
        return ProtocolError(self.name, self.version, path, None, reason)

    def struct(self, cls: type[Struct], value: Any, path: str = "") -> Struct:
        if not isinstance(value, dict):
            raise self.fault(path, f"a JSON object wanted, not {shown(value)}")
        # Two fields may share a name in different versions: the one of this version counts.
        declared = sorted(cls.__wire_fields__, key=lambda field: field.in_version(self.version))
        fields = {field.name: field for field in declared}
        values: dict[str, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise self.fault(path, f"field names are strings, not {shown(key)}")
            inner = f"{path}.{key}" if path else key
            if key == UNKNOWN_TAGS:
                values["unknown_tags"] = self.tags(item, inner)
                continue
            # In Kafka's definitions a few names start with a lower-case letter.
            field = fields.get(key[:1].upper() + key[1:])
            if field is None:
                close = difflib.get_close_matches(key, fields, n=1)
                hint = f"; did you mean {close[0]}?" if close else f"; it has {', '.join(fields) or 'no fields'}"
                raise self.fault(inner, f"{cls.__name__} has no such field{hint}")
            if field.attr in values:
                raise self.fault(inner, "given twice")
            values[field.attr] = self.value(field, field.type, item, inner, field.nullable_in(self.version))
        return cls(**values)

    def tags(self, value: Any, path: str) -> dict[int, bytes]:
        if not isinstance(value, dict) or not all(re.fullmatch(r"[0-9]{1,10}", str(key)) for key in value):
            raise self.fault(path, "an object of tag numbers wanted")
        return {int(tag): self.hex(raw, f"{path}.{tag}") for tag, raw in value.items()}

    def value(self, field: Field, kind: Type, value: Any, path: str, nullable: bool) -> Any:
        if value is None:
            if not nullable and not field.optional:
                raise self.fault(path, "null where null is not allowed")
            return None
        if isinstance(kind, StructType):
            return self.struct(kind.cls, value, path)
        if isinstance(kind, Array):
            if not isinstance(value, list):
                raise self.fault(path, f"a JSON array wanted, not {shown(value)}")
            items = [self.value(field, kind.element, item, f"{path}[{i}]", False) for i, item in enumerate(value)]
            return tuple(items) if isinstance(kind.element, Scalar) else items
        assert isinstance(kind, Scalar)
        return self.scalar(kind, value, path)

    def scalar(self, kind: Scalar, value: Any, path: str) -> Any:
        match kind.name:
            case "bool":
                good = isinstance(value, bool)
            case "string":
                good = isinstance(value, str)
            case "float64":
                if value in ("NaN", "Infinity", "-Infinity"):
                    return float(value)
                good = isinstance(value, (int, float)) and not isinstance(value, bool)
            case "uuid":
                try:
                    return uuid.UUID(value)
                except (ValueError, AttributeError, TypeError):
                    good = False
            case "bytes" | "records":
                return self.hex(value, path)
            case _:
                low, high = _integer_range(kind)
                if isinstance(value, int) and not isinstance(value, bool) and not low <= value <= high:
                    raise self.fault(path, f"{shown(value)} is not in the range of {kind.name}, {low} to {high}")
                good = isinstance(value, int) and not isinstance(value, bool)
        if not good:
            raise self.fault(path, f"{kind.name} wanted, not {shown(value)}")
        return value

    def hex(self, value: Any, path: str) -> bytes:
        try:
            return bytes.fromhex(value)
        except (ValueError, TypeError):
            raise self.fault(path, f"bytes as hex digits wanted, not {shown(value)}") from None


def _integer_range(kind: Scalar) -> tuple[int, int]:
    bits = 8 * kind.size
    return (0, 2**bits - 1) if kind.name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
