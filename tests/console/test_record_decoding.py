"""What keys and values of records are, beside a schema registry, and without."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.console.record_decoding import MOST_UNKNOWN, PAUSE_S, UNKNOWN_S, RecordDecoder
from kohort.console.record_text import Form, shown_as
from kohort.protocol.stored import OFFSETS_TOPIC, record_type
from kohort.protocol.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from kohort.schema_registry.registry import AVRO, JSON, PROTOBUF, RegisteredSchema, RegistryError, UnknownSchemaError

SCHEMAS = {
    1: RegisteredSchema(1, AVRO, '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}'),
    2: RegisteredSchema(2, JSON, "{}"),
    3: RegisteredSchema(3, PROTOBUF, "message A { string a = 1; } message B { int32 b = 1; }"),
    4: RegisteredSchema(4, AVRO, "{"),
}


class Known:
    """What knows these schemas.

    Attributes:
        asked: ids, as they were asked for.
        silent: whether nothing answers.
    """

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.silent = False

    def by_id(self, schema_id: int) -> RegisteredSchema:
        self.asked.append(schema_id)
        if self.silent:
            raise RegistryError("schema registry http://r: no answer within 3 s")
        if schema_id not in SCHEMAS:
            raise UnknownSchemaError(f"schema registry http://r: it hasn't schema {schema_id}")
        return SCHEMAS[schema_id]


def framed(schema_id: int, body: bytes) -> bytes:
    return struct.pack(">bI", 0, schema_id) + body


@pytest.mark.parametrize(
    ("data", "value", "form", "note"),
    [
        (framed(1, b"\x0e"), {"n": 7}, "avro", "schema 1"),
        (framed(2, b'{"a": [1]}'), {"a": [1]}, "json schema", "schema 2"),
        (framed(3, b"\0\x0a\x01x"), {"a": "x"}, "protobuf", "schema 3, A"),
        (framed(3, b"\x02\x02\x08\x05"), {"b": 5}, "protobuf", "schema 3, B"),
        (framed(1, b""), None, "bytes", "schema 1: it ends at byte 0, where 1 bytes are wanted from 0 on"),
        (framed(2, b"{"), None, "bytes", "schema 2: it isn't JSON"),
        (framed(3, b"\x02\x06"), None, "bytes", "schema 3: the schema has no message 3"),
        (framed(4, b""), None, "bytes", "schema 4: the schema isn't JSON"),
        (framed(9, b""), None, "bytes", "schema registry http://r: it hasn't schema 9"),
        (b'{"a": 1}', {"a": 1}, "json", ""),
        (b"{not", "{not", "text", ""),
        (b"words", "words", "text", ""),
        (b"\xff", None, "bytes", ""),
        (b"\0\1", None, "bytes", ""),
        (b"", None, "empty", ""),
        (None, None, "null", ""),
    ],
)
def test_values_are_what_their_schemas_say(data: bytes | None, value: Any, form: str, note: str) -> None:
    assert RecordDecoder(Known()).value("t", None, data) == (value, form, note)
    assert RecordDecoder(Known()).key("t", data) == (value, form, note)


def test_without_a_registry_the_schemas_id_is_told() -> None:
    found = RecordDecoder().value("t", None, framed(7, b"x"))
    assert found == (None, "bytes", "it may be of schema 7: --schema-registry names who has it")
    assert shown_as(found, framed(7, b"x")).note == found.note


def test_a_registry_is_asked_once_for_a_schema_and_not_at_all_while_it_is_silent() -> None:
    known, now = Known(), [0.0]
    decoder = RecordDecoder(known, clock=lambda: now[0])
    known.silent = True
    for _ in range(3):
        assert decoder.value("t", None, framed(1, b"\x0e")).note.startswith("schema 1: schema registry http://r: no")
    assert known.asked == [1]
    known.silent = False
    now[0] = PAUSE_S
    assert [decoder.value("t", None, framed(1, b"\x0e")).value for _ in range(3)] == [{"n": 7}] * 3
    assert known.asked == [1, 1]


def test_numbers_that_begin_with_a_zero_are_not_asked_for_one_by_one() -> None:
    known = Known()
    decoder = RecordDecoder(known)
    for number in range(100, 1_000):
        assert decoder.value("t", None, framed(number, b"abc")).form == "bytes"
    assert len(known.asked) == MOST_UNKNOWN


def test_an_id_that_is_unknown_is_asked_for_once_however_many_records_have_it() -> None:
    known, now = Known(), [0.0]
    decoder = RecordDecoder(known, clock=lambda: now[0])
    for number in range(10 * MOST_UNKNOWN):  # numbers of eight bytes, as keys
        assert decoder.key("t", number.to_bytes(8, "big")).note.endswith("it hasn't schema 0")
    assert known.asked == [0]
    assert decoder.value("t", None, framed(1, b"\x0e")).value == {"n": 7}
    now[0] = UNKNOWN_S
    decoder.key("t", bytes(8))
    assert known.asked == [0, 1, 0]


def test_ids_that_are_unknown_are_counted_within_a_time() -> None:
    known, now = Known(), [0.0]
    decoder = RecordDecoder(known, clock=lambda: now[0])
    for number in range(100, 100 + 2 * MOST_UNKNOWN):
        decoder.value("t", None, framed(number, b"abc"))
        now[0] += 2 * PAUSE_S / MOST_UNKNOWN
    assert len(known.asked) == 2 * MOST_UNKNOWN


def test_schemas_that_are_in_use_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.console.record_decoding.MOST_SCHEMAS", 2)
    known = Known()
    decoder = RecordDecoder(known)
    for number in (1, 2, 1, 3, 1):
        decoder.value("t", None, framed(number, b"\x0e"))
    assert known.asked == [1, 2, 3]


def test_kafkas_own_topics_are_read_by_their_types() -> None:
    kind = record_type(OFFSETS_TOPIC, 1)
    key = kind.encode_key(OffsetCommitKey(group="g", topic="t", partition=3))
    value = kind.encode_value(OffsetCommitValue(offset=5, metadata='{"stream_time": 7}', commit_timestamp=1), 3)
    decoder = RecordDecoder()
    assert decoder.key(OFFSETS_TOPIC, key).value == {"OffsetCommit": {"Group": "g", "Topic": "t", "Partition": 3}}
    found = decoder.value(OFFSETS_TOPIC, key, value)
    assert (found.form, found.note) == ("kafka", "OffsetCommit, version 3")
    assert (found.value["Offset"], found.value["Metadata"]) == (5, {"stream_time": 7})
    assert decoder.value(OFFSETS_TOPIC, key, None) == (None, "null", "deletes the key")
    assert decoder.value(OFFSETS_TOPIC, key, b"\x00").form == "bytes"
    assert "unknown record type 99" in decoder.key(OFFSETS_TOPIC, b"\0\x63").note


def test_a_stores_state_is_opened() -> None:
    value = b'{"n": 2, "state": {"n": 2, "list": "[1, 2]", "bad": "[1"}}'
    found = RecordDecoder().value("app-store-changelog", b"{}", value)
    assert found.value == {"n": 2, "state": {"n": 2, "list": [1, 2], "bad": "[1"}}
    assert found.note == "results, and their state"
    assert shown_as(found, value).text.count("\n") == 10
    assert RecordDecoder().value("app-store-changelog", b"{}", None).note == "deletes the key"


def test_any_bytes_can_be_asked_for_as_they_are() -> None:
    found = RecordDecoder(Known()).value("t", None, framed(1, b"\x0e"))
    assert json.loads(shown_as(found, framed(1, b"\x0e")).text) == {"n": 7}
    assert shown_as(found, framed(1, b"\x0e"), Form.HEX).text.startswith("0000  00 00 00 00 01 0e")


@given(
    st.sampled_from(["t", "a-changelog", *sorted({OFFSETS_TOPIC, "__transaction_state", "__share_group_state"})]),
    st.none() | st.binary(max_size=40),
    st.none() | st.binary(max_size=40) | st.builds(framed, st.integers(0, 5), st.binary(max_size=20)),
)
def test_any_record_is_shown_without_what_a_browser_would_obey(
    topic: str, key: bytes | None, value: bytes | None
) -> None:
    decoder = RecordDecoder(Known())
    for found in (shown_as(decoder.key(topic, key), key), shown_as(decoder.value(topic, key, value), value)):
        assert all(char.isprintable() or char in "\n\t" for char in found.text + found.note)


@pytest.mark.parametrize("depth", [300, 990, 5_000])
def test_deep_values_are_shown(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    for topic, data in (("t", deep), ("a-changelog", b'{"state": {"a": %s}}' % deep)):
        found = RecordDecoder().value(topic, b"{}", data)
        assert shown_as(found, data).text
        assert isinstance(found.text, str)
