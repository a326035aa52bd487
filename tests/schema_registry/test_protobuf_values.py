"""Messages of Protocol Buffers, beside those of Google's library; any bytes, and any text of a schema."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from google.protobuf import json_format, message_factory
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from kohort.schema_registry.protobuf_text import ProtobufMessage, ProtobufSchema
from kohort.schema_registry.protobuf_values import decode_message, message_indexes
from kohort.schema_registry.value_error import ValueFault
from kohort.spark.formats.protobuf_schema import compiled

SCHEMA = """
syntax = "proto3"; // a comment; with { braces
package a.b;
/* import "other.proto"; */
option java_package = "x;{";
message Flight {
  option deprecated = false;
  reserved 100 to 110, 200; reserved "gone";
  enum Kind { option deprecated = false; IN = 0; OUT = 1; LOST = -1; }
  message Leg { string to = 1; int32 minutes = 2; Leg next = 3; }
  int64 n = 1; string who = 2; double delay = 3; float small = 4; bool good = 5; bytes raw = 6;
  Kind kind = 7 [deprecated = true, json_name = "kind;"]; repeated sint32 list = 8; repeated string names = 9;
  map<string, Leg> legs = 10; map<int32, sint64> counts = 17;
  oneof which { fixed64 fixed = 11; sfixed32 signed = 0xC; Leg leg = 13; }
  optional uint32 maybe = 14; repeated Leg all = 15; repeated .a.b.Flight.Kind kinds = 16;
  uint64 large = 18; sfixed64 low = 19; fixed32 f = 20; sint64 zig = 21; map<bool, bool> flags = 22;
}
message Second { message Inner { string a = 1; } Inner inner = 1; }
service S { rpc Get (Flight) returns (Second) { option deprecated = true; } }
"""
CLASS: Any = message_factory.GetMessageClass(compiled(SCHEMA).message())
I32, I64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
LEGS = st.fixed_dictionaries({}, optional={"to": st.text(), "minutes": I32})
FLIGHTS = st.fixed_dictionaries(
    {},
    optional={
        "n": I64, "who": st.text(), "delay": st.floats(allow_nan=False, allow_infinity=False),
        "small": st.floats(allow_nan=False, allow_infinity=False, width=32), "good": st.booleans(),
        "raw": st.binary(), "kind": st.sampled_from(["OUT", "LOST"]), "list": st.lists(I32),
        "names": st.lists(st.text()),
        "legs": st.dictionaries(st.text(), LEGS), "counts": st.dictionaries(I32, I64), "leg": LEGS, "maybe": U32,
        "all": st.lists(LEGS), "kinds": st.lists(st.sampled_from(["IN", "OUT"])), "large": U64, "low": I64, "f": U32,
        "zig": I64, "flags": st.dictionaries(st.sampled_from(["true", "false"]), st.booleans()),
    },
)  # fmt: skip


def plain(value: Any) -> Any:
    """What Google's library shows of a message, as we do."""
    found: dict[str, Any] = {}
    for field, each in value.ListFields():
        entry = field.message_type is not None and field.message_type.GetOptions().map_entry
        if entry:
            of = field.message_type.fields_by_name["value"]
            keys = {str(key).lower() if isinstance(key, bool) else str(key): key for key in each}
            found[field.name] = {name: one(of, each[key]) for name, key in keys.items()}
        elif isinstance(each, (str, bytes, int, float)) or hasattr(each, "ListFields"):
            found[field.name] = one(field, each)
        else:
            found[field.name] = [one(field, item) for item in each]
    return found


def one(field: Any, value: Any) -> Any:
    if hasattr(value, "ListFields"):
        return plain(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return value.hex() if isinstance(value, bytes) else value


@given(FLIGHTS)
def test_what_googles_library_writes_is_read(flight: dict[str, Any]) -> None:
    message = CLASS()
    raw = flight.pop("raw", b"")
    json_format.ParseDict(flight, message)
    message.raw = raw
    schema = ProtobufSchema(SCHEMA)
    found = decode_message(message.SerializeToString(), schema, schema.message([0]))
    # An entry of a map whose value is the default has it left out by some writers, and not by ours here.
    assert found == plain(message)


def test_messages_are_named_by_their_places() -> None:
    schema = ProtobufSchema(SCHEMA)
    assert schema.message([1, 0]).name == "a.b.Second.Inner"
    with pytest.raises(ValueFault, match="no message 2"):
        schema.message([2])
    assert message_indexes(b"\0rest") == ([0], 1)
    assert message_indexes(b"\x04\x02\x00rest") == ([1, 0], 3)
    with pytest.raises(ValueFault, match="indexes"):
        message_indexes(b"\x82\x01")


def test_without_a_schema_fields_have_numbers() -> None:
    data = b"\x08\x05\x12\x02hi\x08\x06"
    assert decode_message(data, ProtobufSchema(""), ProtobufMessage("")) == {"#1": [5, 6], "#2": "6869"}


def test_many_fields_that_the_schema_has_not_take_time_in_proportion() -> None:
    data = b"\x08\x05" * 100_000
    began = time.process_time()
    assert len(decode_message(data, ProtobufSchema(""), ProtobufMessage(""))["#1"]) == 100_000
    assert time.process_time() - began < 10  # with a copy of all before for each it takes far longer
    inner = decode_message(b"\x0a\x01a\x0a\x01b\x10\x01", ProtobufSchema(""), ProtobufMessage(""))
    assert inner == {"#1": ["61", "62"], "#2": 1}


def test_semicolons_too_many_are_passed_over() -> None:
    schema = ProtobufSchema("; message A { string a = 1; }; message B { int32 b = 1; }; ; enum E { X = 0; };")
    assert schema.message([1]).fields[1].name == "b"
    assert schema.find("E", "") is not None


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ("string a = 1; repeated int32 a = 2;", "two fields of one name in message M"),
        ("string a = 1; oneof o { int32 b = 1; }", "two fields of number 1 in message M"),
    ],
)
def test_fields_have_names_and_numbers_of_their_own(fields: str, why: str) -> None:
    with pytest.raises(ValueFault, match=why):
        ProtobufSchema(f"message M {{ {fields} }}")


SECONDS = st.integers(-62_135_596_800, 253_402_300_799)
LENGTHS = st.integers(-315_576_000_000, 315_576_000_000)
NANOS = st.sampled_from([0, 1, 10, 20_000_000, 5_000, 999_999_999])


@given(SECONDS, LENGTHS, NANOS)
def test_times_and_durations_are_what_googles_library_shows(seconds: int, length: int, nanos: int) -> None:
    schema = ProtobufSchema(
        'import "google/protobuf/timestamp.proto"; package a;'
        "message M { google.protobuf.Timestamp at = 1; repeated google.protobuf.Duration took = 2; }"
    )
    at, took = Timestamp(seconds=seconds, nanos=nanos), Duration(seconds=length, nanos=-nanos if length < 0 else nanos)
    parts = [(0x0A, at.SerializeToString()), (0x12, took.SerializeToString())]
    data = b"".join(bytes([tag, len(part)]) + part for tag, part in parts)
    shown = [json.loads(json_format.MessageToJson(each)) for each in (at, took)]
    assert decode_message(data, schema, schema.message([0])) == {"at": shown[0], "took": [shown[1]]}


def test_googles_other_types_are_known_and_times_that_are_none_are_numbers() -> None:
    schema = ProtobufSchema(
        "message M { google.protobuf.StringValue s = 1; google.protobuf.Any any = 2; google.protobuf.Struct of = 3;"
        " google.protobuf.FieldMask mask = 4; google.protobuf.Timestamp at = 5; }"
    )
    data = bytes.fromhex("0a030a0178 12060a0174120161 1a090a070a016112020801 22030a0161 2a0310ff7f")
    assert decode_message(data, schema, schema.message([0])) == {
        "s": {"value": "x"},
        "any": {"type_url": "t", "value": "61"},
        "of": {"fields": {"a": {"null_value": 1}}},
        "mask": {"paths": ["a"]},
        "at": "1970-01-01T00:00:00.000016383Z",
    }
    assert decode_message(b"\x2a\x0b\x10" + b"\xff" * 9 + b"\x01", schema, schema.message([0])) == {"at": {"nanos": -1}}


def test_older_schemas_have_groups_and_unpacked_lists() -> None:
    text = 'syntax = "proto2"; message M { repeated group G = 1 { required int32 a = 1; } repeated int32 l = 2; }'
    schema = ProtobufSchema(text)
    data = b"\x0b\x08\x01\x0c\x10\x05\x10\x06\x0b\x08\x02\x0c"
    assert decode_message(data, schema, schema.message([0])) == {"g": [{"a": 1}, {"a": 2}], "l": [5, 6]}


def test_types_of_files_that_are_imported_are_known() -> None:
    other = "package x; message Place { string code = 1; } enum Side { LEFT = 0; RIGHT = 1; }"
    schema = ProtobufSchema('import "p.proto"; message M { x.Place at = 1; x.Side side = 2; }', [("p.proto", other)])
    assert decode_message(b"\x0a\x05\x0a\x03JFK\x10\x01", schema, schema.message([0])) == {
        "at": {"code": "JFK"},
        "side": "RIGHT",
    }


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("0a", "it ends at byte 1"),
        ("12ff01", "field who wants 255 bytes from byte 3 on, and 0 are there"),
        ("1900", "field delay wants 8 bytes"),
        ("00", "field 0 at byte 0"),
        ("0c", "a group ends at byte 0"),
        ("08" + "ff" * 11, "more than ten bytes"),
        ("fb01" * 150, "nested too deeply"),
        ("0e", "wire type 6"),
    ],
)
def test_what_is_wrong_is_said(data: str, why: str) -> None:
    schema = ProtobufSchema(SCHEMA)
    with pytest.raises(ValueFault, match=why):
        decode_message(bytes.fromhex(data), schema, schema.message([0]))


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    schema = ProtobufSchema(SCHEMA)
    with contextlib.suppress(ValueFault):
        json.dumps(decode_message(data, schema, schema.message([0])))


WORDS = [
    '"',
    "[",
    "]",
    "{",
    "}",
    "=",
    "1",
    ";",
    "map",
    "<",
    ">",
    ",",
    "message",
    "enum",
    "M",
    "option",
    "group",
    "oneof",
]


@given(st.lists(st.sampled_from(WORDS)).map(" ".join), st.binary(max_size=8))
def test_any_schema_is_read_or_refused(text: str, data: bytes) -> None:
    try:
        schema = ProtobufSchema(text)
        decode_message(data, schema, schema.message([0]))
    except ValueFault:
        pass
