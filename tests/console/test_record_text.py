from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.console.record_decoding import Decoded
from kohort.console.record_text import MOST_BYTES, Form, shown, shown_as


@pytest.mark.parametrize(
    ("data", "text", "form"),
    [
        (None, "null", "null"),
        (b"", "", "empty"),
        (b'{"b":1.50,"a":[1]}', '{\n  "b": 1.50,\n  "a": [\n    1\n  ]\n}', "json"),
        (b"42", "42", "text"),
        (b"{not json", "{not json", "text"),
        ("grüße\n".encode(), "grüße\n", "text"),
        ("a\u202eb".encode(), "a\\u202eb", "text"),
        (b"\x00\x01ab\xff", "0000  00 01 61 62 ff                                   ..ab.", "hex"),
    ],
)
def test_bytes_are_shown_as_what_they_are(data: bytes | None, text: str, form: str) -> None:
    found = shown(data)
    assert (found.text.rstrip("\n") if form != "text" else found.text, found.form) == (text, form)


def test_what_does_not_fit_is_shown_in_hex_and_says_so() -> None:
    assert shown(b"words", Form.JSON)[1:] == ("hex", "no JSON")
    assert shown(b"\xff", Form.TEXT)[1:] == ("hex", "no UTF-8")
    assert shown(b"42", Form.JSON)[:2] == ("42", "json")


def test_deep_json_does_not_grow_by_its_indents() -> None:
    found = shown(b"[" * 900 + b"]" * 900)
    assert found == ("[" * 900 + "]" * 900, "json", "")


@pytest.mark.parametrize("form", ["avro", "json schema"])
def test_deep_and_large_values_take_no_more_memory_than_they_show(form: str) -> None:
    value: object = list(range(6_000))
    for _ in range(900):
        value = [value]
    tracemalloc.start()
    try:
        found = shown_as(Decoded(value, form, "schema 1"), b"x")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert found.text.startswith("[[[[")
    assert found.note == f"schema 1; the first {MOST_BYTES:,} of {len(json.dumps(value).replace(' ', '')):,} bytes"
    assert len(found.text) == MOST_BYTES
    assert shown_as(Decoded([["ä"]], form), b"x").text == '[\n  [\n    "ä"\n  ]\n]'


def test_long_values_are_cut_and_it_is_told() -> None:
    found = shown("ä".encode() * MOST_BYTES)
    assert found.text == "ä" * (MOST_BYTES // 2)
    assert found.note == f"the first {MOST_BYTES:,} of {2 * MOST_BYTES:,} bytes"
    assert shown(b"a" + "ä".encode() * MOST_BYTES).text == "a" + "ä" * (MOST_BYTES // 2 - 1)
    assert shown(b"\xff" * (MOST_BYTES + 1)).note == f"the first {MOST_BYTES:,} of {MOST_BYTES + 1:,} bytes"


@given(st.binary(max_size=200), st.sampled_from(Form))
def test_any_bytes_are_shown_without_what_a_browser_would_obey(data: bytes, form: Form) -> None:
    found = shown(data, form)
    assert all(char.isprintable() or char in "\n\t" for char in found.text)


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=8).map(lambda value: {"v": value}))
def test_json_keeps_its_meaning(value: object) -> None:
    found = shown(json.dumps(value).encode())
    assert found.form == "json"
    assert json.loads(found.text) == value
