"""Messages of Google's own .proto files, which schemas import without their registry having them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

__all__ = ["WELL_KNOWN", "read_as_known"]

WELL_KNOWN: Final = """
package google.protobuf;
message Any { string type_url = 1; bytes value = 2; }
message Timestamp { int64 seconds = 1; int32 nanos = 2; }
message Duration { int64 seconds = 1; int32 nanos = 2; }
message Empty { }
message FieldMask { repeated string paths = 1; }
message Struct { map<string, Value> fields = 1; }
message Value {
  oneof kind {
    NullValue null_value = 1; double number_value = 2; string string_value = 3; bool bool_value = 4;
    Struct struct_value = 5; ListValue list_value = 6;
  }
}
message ListValue { repeated Value values = 1; }
enum NullValue { NULL_VALUE = 0; }
message DoubleValue { double value = 1; }
message FloatValue { float value = 1; }
message Int64Value { int64 value = 1; }
message UInt64Value { uint64 value = 1; }
message Int32Value { int32 value = 1; }
message UInt32Value { uint32 value = 1; }
message BoolValue { bool value = 1; }
message StringValue { string value = 1; }
message BytesValue { bytes value = 1; }
"""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_S: Final = -62_135_596_800
_LAST_S: Final = 253_402_300_799
_LONGEST_S: Final = 315_576_000_000
_NANOS: Final = 1_000_000_000


def read_as_known(name: str, fields: dict[str, Any]) -> Any:
    """A message's fields; times and durations as Protocol Buffers' JSON has them, unless they are out of its bounds."""
    made = _FORMS.get(name)
    seconds, nanos = fields.get("seconds", 0), fields.get("nanos", 0)
    if made is None or not fields.keys() <= {"seconds", "nanos"} or not (type(seconds) is type(nanos) is int):
        return fields
    return made(seconds, nanos) or fields


def _timestamp(seconds: int, nanos: int) -> str | None:
    if not (_FIRST_S <= seconds <= _LAST_S and 0 <= nanos < _NANOS):
        return None
    return f"{(_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()}{_fraction(nanos)}Z"


def _duration(seconds: int, nanos: int) -> str | None:
    if abs(seconds) > _LONGEST_S or abs(nanos) >= _NANOS or seconds * nanos < 0:
        return None
    return f"{'-' if seconds < 0 or nanos < 0 else ''}{abs(seconds)}{_fraction(abs(nanos))}s"


def _fraction(nanos: int) -> str:
    """Nanoseconds in three, six or nine digits; nothing for none."""
    digits = f"{nanos:09}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f".{digits}" if digits else ""


_FORMS: Final[Mapping[str, Callable[[int, int], str | None]]] = {
    "google.protobuf.Timestamp": _timestamp,
    "google.protobuf.Duration": _duration,
}
