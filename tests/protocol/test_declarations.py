"""Declarations: annotations match wire types, every field is documented, the index is complete."""

from __future__ import annotations

import copy
import pickle
import re
import sys
import types
import typing
import uuid

import pytest

from kohort.protocol.errors import ErrorCode, KafkaError, ProtocolError
from kohort.protocol.message import Message, Request
from kohort.protocol.messages import API_NAMES, api, apis
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.metadata import MetadataResponse
from kohort.protocol.schema import (
    LATEST,
    NEVER,
    Array,
    Field,
    Records,
    Scalar,
    Struct,
    StructType,
    camel_case,
    fields_of,
    string,
    struct,
    walk_structs,
)
from kohort.protocol.stored import OFFSETS_TOPIC, decode_key, record_type, record_types

from .everything import MESSAGES, label

STRUCTS = list({part: None for message in MESSAGES for part in walk_structs(message)})
PYTHON_TYPES = {"bool": bool, "float64": float, "string": str, "bytes": bytes, "records": Records, "uuid": uuid.UUID}


def hints(cls: type[Struct]) -> dict[str, object]:
    """Annotations, resolved as a type checker does: nested classes are in the scope of their class."""
    module = vars(sys.modules[cls.__module__])
    return {
        name: eval(text, {**module, "uuid": uuid}, dict(vars(cls)))  # the file's own source
        for name, text in cls.__annotations__.items()
        if not name.startswith("__") and name != "unknown_tags"
    }


def expected(field: Field) -> object:
    kind = field.type
    if isinstance(kind, Array):
        element = kind.element
        if isinstance(element, StructType):
            python: object = list[element.cls]  # type: ignore[name-defined]
        else:
            python = tuple[PYTHON_TYPES.get(element.name, int), ...]  # type: ignore[misc]
    elif isinstance(kind, StructType):
        python = kind.cls
    else:
        assert isinstance(kind, Scalar)
        python = PYTHON_TYPES.get(kind.name, int)
    return python | None if field.nullable_since < NEVER or field.optional else python  # type: ignore[operator]


def flat(hint: object) -> set[object]:
    return set(typing.get_args(hint)) if isinstance(hint, (types.UnionType,)) else {hint}


@pytest.mark.parametrize("cls", STRUCTS, ids=lambda cls: cls.__qualname__)
def test_annotations_agree_with_wire_types(cls: type[Struct]) -> None:
    annotated = hints(cls)
    assert list(annotated) == [field.attr for field in cls.__wire_fields__]
    for field in cls.__wire_fields__:
        assert flat(annotated[field.attr]) == flat(expected(field)), field


@pytest.mark.parametrize("cls", STRUCTS, ids=lambda cls: cls.__qualname__)
def test_everything_is_explained(cls: type[Struct]) -> None:
    assert cls.__doc__ or not issubclass(cls, Message)
    for field in cls.__wire_fields__:
        assert field.doc.endswith(".")
        assert len(field.doc) > 8
        assert field.since <= field.until
        # A field that another takes over after some version has that one's name.
        attr = re.sub(r"_v\d+$", "", field.attr) if field.until < LATEST else field.attr
        assert field.name in (camel_case(field.attr), camel_case(attr))
        if field.name.endswith("Ms"):
            assert re.search(r"\bms\b", field.doc)


def test_every_array_element_takes_at_least_a_byte() -> None:
    """So that a count can never make a loop longer than the input."""
    for message in MESSAGES:
        for version in message.__message__.versions:
            for part in walk_structs(message):
                for field in part.__wire_fields__:
                    if field.in_version(version) and isinstance(field.type, Array):
                        element = field.type.element
                        flexible = message.__message__.flexible_in(version)
                        assert not isinstance(element, StructType) or least_size(element.cls, version, flexible) > 0


def least_size(cls: type[Struct], version: int, flexible: bool) -> int:
    """Bytes of the struct that has everything empty."""
    plain, _ = fields_of(cls, version, flexible)
    return flexible + sum(
        least_size(field.type.cls, version, flexible)
        if isinstance(field.type, StructType) and not field.nullable_in(version)
        else 1
        for field in plain
    )


def test_request_and_response_have_the_same_versions() -> None:
    for entry in apis():
        assert entry.request.__message__.versions == entry.response.__message__.versions
        assert entry.request.__message__.flexible_since == entry.response.__message__.flexible_since
        assert entry.request.__message__.key == entry.response.__message__.key == entry.key


def test_apis_are_found_by_key_and_by_name_in_any_case() -> None:
    assert api(12) is api(12)
    assert api("Heartbeat").request is HeartbeatRequest
    assert api("streamsgroupheartbeat").key == 88
    with pytest.raises(KeyError):
        api("NoSuchApi")
    assert list(API_NAMES) == sorted(API_NAMES)


def test_header_versions() -> None:
    assert api("Heartbeat").request_header_version(3) == 1
    assert api("Heartbeat").request_header_version(4) == 2
    assert api("Heartbeat").response_header_version(3) == 0
    assert api("Heartbeat").response_header_version(4) == 1
    # A client that asks for the versions can't know them yet.
    assert api("ApiVersions").response_header_version(3) == 0
    assert api("ApiVersions").request_header_version(3) == 2


def test_messages_compare_print_copy_and_pickle() -> None:
    value = HeartbeatRequest(group_id="orders", generation_id=7)
    assert repr(value) == "HeartbeatRequest(group_id='orders', generation_id=7)"
    assert value == HeartbeatRequest(generation_id=7, group_id="orders")
    assert value != HeartbeatRequest(group_id="orders", generation_id=8)
    assert copy.copy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value
    topic = MetadataResponse.Topic(name="t", partitions=[MetadataResponse.Topic.Partition(partition_index=1)])
    assert pickle.loads(pickle.dumps(MetadataResponse(topics=[topic]))) == MetadataResponse(topics=[topic])


def test_messages_are_slotted() -> None:
    with pytest.raises(AttributeError):
        HeartbeatRequest().groop_id = "x"  # type: ignore[attr-defined]
    assert not hasattr(HeartbeatRequest(), "__dict__")


def test_defaults_are_not_shared() -> None:
    MetadataResponse().topics.append(MetadataResponse.Topic())
    assert MetadataResponse().topics == []


@pytest.mark.parametrize("versions", ["4-", "0+", "", "-1", "5-3"])
def test_a_version_range_must_be_well_formed(versions: str) -> None:
    with pytest.raises(TypeError, match=r"should look like|end before they begin"):

        class _Wrong(Request, key=1, versions=versions):
            pass


def test_class_options_are_checked() -> None:
    with pytest.raises(TypeError, match="colour"):

        class _Wrong(Request, key=1, versions="0", colour=2):
            pass

    with pytest.raises(TypeError, match="takes no options"):

        class _Plain(Struct, versions="0"):
            pass


def test_what_a_declaration_cannot_say_is_refused() -> None:
    class Inner(Struct):
        word: str = string("A word.")

    with pytest.raises(TypeError, match="can't be extended"):

        class _Extended(HeartbeatRequest, key=12, versions="0"):
            pass

    with pytest.raises(TypeError, match="has its own defaults"):
        struct(Inner, "One.", default=Inner(word="x"))
    with pytest.raises(TypeError, match="must be so since it exists"):
        struct(Inner, "One.", tag=0, tagged_since=3)


def test_positional_arguments_are_fields_in_order() -> None:
    assert HeartbeatRequest("orders", 7) == HeartbeatRequest(group_id="orders", generation_id=7)  # type: ignore[misc]


def test_a_new_message_needs_nothing_but_its_declaration() -> None:
    class Ping(Message, key=999, versions="0-1", flexible=1):
        word: str = string("What to echo.")

    assert Ping(word="hi").encode(0) == b"\0\2hi"
    assert Ping.decode(b"\3hi\0", 1) == Ping(word="hi")


# What coordinators persist.


def test_record_types_are_those_of_kafka() -> None:
    numbers = [record.number for record in record_types() if record.topic == OFFSETS_TOPIC]
    assert numbers == [*range(9), *range(10, 18), *range(19, 24)]


@pytest.mark.parametrize("record", list(record_types()), ids=lambda record: record.name)
def test_stored_keys_and_values_round_trip(record: object) -> None:
    from .everything import RandomMessages

    assert not isinstance(record, str)
    draw = RandomMessages(label(record))
    key = draw.message(record.key, 0)  # type: ignore[attr-defined]
    raw = record.encode_key(key)  # type: ignore[attr-defined]
    assert decode_key(record.topic, raw) == (record, key)  # type: ignore[attr-defined]
    for version in record.value.__message__.versions:  # type: ignore[attr-defined]
        value = draw.message(record.value, version)  # type: ignore[attr-defined]
        assert record.decode_value(record.encode_value(value, version)) == (value, version)  # type: ignore[attr-defined]


def test_a_committed_offset_as_kafka_stores_it() -> None:
    record = record_type(OFFSETS_TOPIC, 1)
    key = record.key(group="g", topic="t", partition=3)  # type: ignore[call-arg]
    assert record.encode_key(key) == b"\0\1" + b"\0\1g" + b"\0\1t" + b"\0\0\0\3"
    value = record.value(offset=7, metadata="", commit_timestamp=9)  # type: ignore[call-arg]
    assert record.encode_value(value, 3)[:2] == b"\0\3"


@pytest.mark.parametrize("raw", [b"", b"\0", b"\0\x12", b"\x7f\xff", b"\0\1\0\1g\0\1t\0\0\0\3!"])
def test_unknown_or_broken_keys_are_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolError, match=r"key in __consumer_offsets|left over") as caught:
        decode_key(OFFSETS_TOPIC, raw)
    assert caught.value.offset == (12 if raw.endswith(b"!") else 0)


@pytest.mark.parametrize("raw", [b"", b"\0", b"\x7f\xff", b"\0\0"])
def test_broken_values_are_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolError, match="OffsetCommitValue") as caught:
        record_type(OFFSETS_TOPIC, 1).decode_value(raw)
    assert caught.value.offset == (2 if raw == b"\0\0" else 0)


def test_a_record_takes_its_own_key_and_value_only() -> None:
    offsets, group = record_type(OFFSETS_TOPIC, 1), record_type(OFFSETS_TOPIC, 2)
    with pytest.raises(TypeError, match="OffsetCommitKey wanted, not GroupMetadataKey"):
        offsets.encode_key(group.key())
    with pytest.raises(TypeError, match="OffsetCommitValue wanted, not GroupMetadataValue"):
        offsets.encode_value(group.value())


def test_an_error_of_a_broker_says_its_name_and_travels() -> None:
    error = KafkaError(ErrorCode.NOT_COORDINATOR, "moved")
    assert str(error) == "NOT_COORDINATOR (16): moved"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert error.code.retriable
