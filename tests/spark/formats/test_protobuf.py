"""Protocol Buffers: what the library wrote is read, by numbers; whatever the bytes, bad rows are named."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as spark

pytest.importorskip("grpc_tools")

from kohort.spark.formats import FormatError
from kohort.spark.formats.protobuf_columns import columns_of
from kohort.spark.formats.protobuf_decoder import ProtobufDecoder
from kohort.spark.formats.protobuf_encoder import ProtobufEncoder, proto_of
from kohort.spark.formats.protobuf_schema import _checked_files, compiled, message_class, read_indexes

TEXT = """
syntax = "proto3";
package air;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Flight {
  enum Kind { UNKNOWN = 0; CARGO = 1; }
  message Leg { string to = 1; optional int32 miles = 2; }
  int64 n = 1; optional double delay = 2; string origin = 3; bytes raw = 4; uint64 big = 5; Kind kind = 6;
  google.protobuf.Timestamp at = 7; google.protobuf.StringValue note = 8; Leg leg = 9; repeated Leg legs = 10;
  map<string, int32> seats = 11; bool late = 12; float share = 13;
}
message Other { int64 n = 1; }
"""
LATER = """
syntax = "proto3";
package air;
message Flight { sint32 gate = 20; string departs = 3; int64 n = 1; }
"""
SCHEMA = compiled(TEXT)
FLIGHT = message_class(SCHEMA.message())
COLUMNS = columns_of(SCHEMA.message())
DECODER = ProtobufDecoder(COLUMNS, SCHEMA)
AT = datetime(2013, 1, 31, 5, tzinfo=UTC)

legs = st.builds(FLIGHT.Leg, to=st.text(max_size=3), miles=st.none() | st.integers(-(2**31), 2**31 - 1))
flights = st.builds(
    FLIGHT, n=st.integers(-(2**63), 2**63 - 1), delay=st.none() | st.floats(allow_nan=False),
    origin=st.text(max_size=5), raw=st.binary(max_size=5), big=st.integers(0, 2**64 - 1),
    kind=st.sampled_from([0, 1, 7]), at=st.none() | st.just(AT),
    note=st.none() | st.text(max_size=3).map(lambda text: {"value": text}), leg=st.none() | legs,
    legs=st.lists(legs, max_size=2), seats=st.dictionaries(st.text(max_size=2), st.integers(0, 9)),
    late=st.booleans(), share=st.floats(width=32, allow_nan=False),
)  # fmt: skip


def leg(message: Any) -> dict[str, Any]:
    return {"to": message.to, "miles": message.miles if message.HasField("miles") else None}


def row(message: Any) -> dict[str, Any]:
    return {
        "n": message.n, "delay": message.delay if message.HasField("delay") else None, "origin": message.origin,
        "raw": message.raw, "big": message.big, "kind": {0: "UNKNOWN", 1: "CARGO"}.get(message.kind, str(message.kind)),
        "at": message.at.ToDatetime(UTC) if message.HasField("at") else None,
        "note": message.note.value if message.HasField("note") else None,
        "leg": leg(message.leg) if message.HasField("leg") else None, "legs": [leg(each) for each in message.legs],
        "seats": sorted(message.seats.items()), "late": message.late, "share": message.share,
    }  # fmt: skip


def read(values: list[bytes | None], decoder: ProtobufDecoder = DECODER) -> list[Any]:
    """A row for each value, None for the bad ones."""
    result = decoder.decode(pa.array(values, pa.binary()))
    result.columns.validate(full=True)
    good = list(range(len(values))) if result.good is None else result.good.to_pylist()
    assert sorted([*good, *(number for number, _ in result.errors)]) == list(range(len(values)))
    found: list[Any] = [None] * len(values)
    for number, each in zip(good, result.columns.to_pylist(), strict=True):
        found[number] = each | {"seats": sorted(each["seats"])} if "seats" in each else each
    return found


@settings(max_examples=100, deadline=None)
@given(st.lists(flights, max_size=4))
def test_what_was_written_is_read(messages: list[Any]) -> None:
    values: list[bytes | None] = [b"\0" + each.SerializeToString() for each in messages]
    assert read(values) == [row(each) for each in messages]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=30) | st.binary(max_size=30).map(lambda value: b"\0" + value), max_size=4))
def test_any_bytes(values: list[bytes | None]) -> None:
    for value, found in zip(values, read(values), strict=True):
        assert value is not None
        if found is not None:
            assert found == row(FLIGHT.FromString(value[read_indexes(value)[1] :]))


def test_columns_of_a_message() -> None:
    assert COLUMNS.simpleString() == (
        "struct<n:bigint,delay:double,origin:string,raw:binary,big:decimal(20,0),kind:string,at:timestamp,note:string,"
        "leg:struct<to:string,miles:int>,legs:array<struct<to:string,miles:int>>,seats:map<string,int>,late:boolean,"
        "share:float>"
    )
    assert [each.name for each in COLUMNS.fields if each.nullable] == ["delay", "at", "note", "leg"]


def test_fields_are_found_by_their_numbers_whatever_the_writer_calls_them() -> None:
    later = compiled(LATER).message()
    decoder = ProtobufDecoder(columns_of(later), SCHEMA, later)
    assert read([b"\0" + FLIGHT(n=5, origin="JFK").SerializeToString()], decoder) == [
        {"gate": 0, "departs": "JFK", "n": 5}
    ]


def test_a_record_with_another_message_is_a_bad_one() -> None:
    other = b"\x02\x02" + message_class(SCHEMA.message((1,)))(n=1).SerializeToString()
    inner = b"\x04\0\0" + FLIGHT.Leg(to="JFK").SerializeToString()
    nothing = b"\x02\x0e"
    result = ProtobufDecoder(COLUMNS, SCHEMA, SCHEMA.message()).decode(pa.array([other, inner, nothing], pa.binary()))
    assert [why for _, why in result.errors] == [
        "no message of this schema: it is a air.Other, and air.Flight is read",
        "no message of this schema: it is a air.Flight.Leg, and air.Flight is read",
        "no message of this schema: the schema has no message 7",
    ]


def test_without_a_readers_message_columns_that_are_not_there_are_null() -> None:
    columns = spark.StructType([spark.StructField(name, spark.LongType()) for name in ("n", "new")])
    assert read([b"\0" + FLIGHT(n=5).SerializeToString(), None], ProtobufDecoder(columns, SCHEMA)) == [
        {"n": 5, "new": None},
        {"n": None, "new": None},
    ]
    with pytest.raises(FormatError, match=r"column origin: message air\.Flight has string, not bigint"):
        ProtobufDecoder(spark.StructType([spark.StructField("origin", spark.LongType())]), SCHEMA)


def test_what_is_imported_is_compiled_with_it() -> None:
    place = 'syntax = "proto3"; message Place { string code = 1; }'
    trip = 'syntax = "proto3"; import "geo/place.proto"; message Trip { Place to = 1; }'
    found = columns_of(compiled(trip, (("geo/place.proto", place),)).message())
    assert found.simpleString() == "struct<to:struct<code:string>>"


@pytest.mark.parametrize("name", ["grpc_tools/__init__.py", "grpc_tools/protoc.py", "google/protobuf/evil.py"])
def test_no_file_of_a_schema_is_run(name: str, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with pytest.raises(FormatError, match=r"which is no name of a \.proto file"):
        compiled('syntax = "proto3"; message A { int32 a = 1; }', ((name, f"open({str(mark)!r}, 'w')"),))
    assert not mark.exists()


def test_protoc_runs_where_no_file_of_a_schema_is(monkeypatch: pytest.MonkeyPatch) -> None:
    run, commands = subprocess.run, []

    def seen(command: list[str], **options: Any) -> Any:
        commands.append((command, list(options["cwd"].iterdir())))
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", seen)
    compiled('syntax = "proto3"; import "x.proto"; message Alone { int32 a = 1; }', (("x.proto", "// nothing"),))
    [(command, beside)] = commands
    assert (command[1:3], beside) == (["-P", "-m"], [])


@pytest.mark.parametrize(
    "names",
    [
        ["/x.proto"], ["a/../x.proto"], ["a//x.proto"], ["./x.proto"], ["a\\x.proto"], ["a\0.proto"], [".."], [""],
        ["x.txt"], ["x" * 300 + ".proto"], ["x/" * 300 + "x.proto"], ["\ud800.proto"], ["schema.proto"],
        ["x.proto", "x.proto"], ["x.proto", "x.proto/y.proto"], ["x.proto/y.proto", "x.proto"],
    ],
)  # fmt: skip
def test_names_that_no_file_can_have(names: list[str]) -> None:
    with pytest.raises(FormatError, match="the schema imports "):
        compiled('syntax = "proto3"; message A { int32 a = 1; }', tuple((name, 'syntax = "proto3";') for name in names))


@given(st.text(max_size=6).map(lambda name: name + ".proto") | st.text("./\\a\0", max_size=8), st.text(max_size=3))
def test_any_names_are_files_or_refused(name: str, text: str) -> None:
    try:
        files = _checked_files("", ((name, text),))
    except FormatError:
        return
    assert (Path("/top") / name).resolve().is_relative_to("/top")
    assert files == {name: text.encode(), "schema.proto": b""}


def test_a_schema_that_is_no_text_or_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FormatError, match="its text is no Unicode"):
        compiled('syntax = "proto3"; // \ud800')

    def slow(command: list[str], **options: Any) -> Any:
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(subprocess, "run", slow)
    with pytest.raises(FormatError, match="protoc takes more than 60 s"):
        compiled('syntax = "proto3"; // slow')


def test_messages_that_are_fields_of_each_other_many_times() -> None:
    many = "".join(f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }}" for n in range(30))
    message = compiled(f'syntax = "proto3"; {many} message M30 {{ int32 n = 1; }}').message()
    with pytest.raises(FormatError, match="message M0 has more than 10,000 fields, with those of its messages"):
        columns_of(message)


def test_what_is_not_wanted_may_contain_itself() -> None:
    schema = compiled('syntax = "proto3"; message Node { Node next = 1; map<string, Node> more = 2; int64 n = 3; }')
    columns = spark.StructType([spark.StructField("n", spark.LongType())])
    value = message_class(schema.message())(n=5, next={"n": 6}).SerializeToString()
    for reader in (None, schema.message()):
        assert read([b"\0" + value], ProtobufDecoder(columns, schema, reader)) == [{"n": 5}]
    with pytest.raises(FormatError, match="message Node has no field m, but next, more, n"):
        ProtobufDecoder(spark.StructType([spark.StructField("m", spark.LongType())]), schema, schema.message())


def test_a_message_with_a_wrappers_name() -> None:
    messages = "message A { StringValue a = 1; } message StringValue { int32 n = 1; }"
    text = f'syntax = "proto3"; package google.protobuf; {messages}'
    assert columns_of(compiled(text).message()).simpleString() == "struct<a:struct<n:int>>"


@pytest.mark.parametrize(
    ("text", "references", "why"),
    [
        ("message", (), r"no schema of Protocol Buffers: schema\.proto"),
        ('syntax = "proto3";', (("../../x.proto", ""),), "which is no name of a .proto file"),
        ('syntax = "proto3"; message A { A a = 1; }', (), "message A contains itself"),
        ('syntax = "proto3"; message A { }', (), "message A has no fields"),
    ],
)
def test_schemas_that_can_not_be(text: str, references: Any, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        columns_of(compiled(text, references).message())


def test_the_proto_of_columns_writes_them() -> None:
    inner = spark.StructType([spark.StructField("to", spark.StringType())])
    columns = spark.StructType(
        [
            spark.StructField("n", spark.LongType(), nullable=False),
            spark.StructField("delay", spark.DoubleType()),
            spark.StructField("at", spark.TimestampType()),
            spark.StructField("legs", spark.ArrayType(inner, containsNull=False)),
            spark.StructField("seats", spark.MapType(spark.StringType(), spark.IntegerType())),
            spark.StructField("leg", inner),
        ]
    )
    schema = compiled(proto_of(columns, "flights"))
    rows = [
        {"n": 1, "delay": 2.5, "at": AT, "legs": [{"to": "JFK"}], "seats": [("a", 1)], "leg": {"to": None}},
        {"n": 2, "delay": None, "at": None, "legs": [], "seats": [], "leg": None},
    ]
    decoder = ProtobufDecoder(columns, schema)
    values = ProtobufEncoder(columns, schema).encode(pa.Table.from_pylist(rows, schema=decoder.schema))
    assert read([b"\0" + each for each in values.to_pylist()], decoder) == rows
    with pytest.raises(FormatError, match="Protocol Buffers have no date"):
        proto_of(spark.StructType([spark.StructField("d", spark.DateType())]), "x")
