"""Properties files, beside what java.util.Properties reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.broker.config.properties import Property, decode, parse

VECTORS = json.loads((Path(__file__).parent / "vectors" / "properties.json").read_text())


@pytest.mark.parametrize(("text", "wanted"), VECTORS, ids=[repr(text) for text, _ in VECTORS])
def test_reads_as_java_does(text: str, wanted: dict[str, str]) -> None:
    assert {key: value for key, value, _ in parse(text)} == wanted


def test_a_property_has_the_number_of_its_first_line() -> None:
    text = "# comment\n\na=1\\\n  2\nb=3\n"

    assert list(parse(text)) == [Property("a", "12", 3), Property("b", "3", 5)]


def test_a_bad_escape_is_refused_with_its_line() -> None:
    with pytest.raises(ValueError, match=r"line 2: .*four hex digits"):
        list(parse("a=1\nb=\\u00g1\n"))


def test_bytes_that_are_not_utf_8_are_latin_1() -> None:
    assert decode("a=é".encode("latin-1")) == "a=é"


def test_a_byte_order_mark_is_left_out() -> None:
    assert decode("\ufeffa=é".encode()) == "a=é"


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" if not char.isalnum() else char for char in text)


plain = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=20)


@given(plain.filter(bool), plain)
def test_what_is_escaped_comes_back(key: str, value: str) -> None:
    assert list(parse(f"{_escaped(key)}={_escaped(value)}")) == [Property(key, value, 1)]


@given(st.text(st.sampled_from("ab=: \t\\#!\n\r\fu0"), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        properties = list(parse(text))
    except ValueError as error:
        assert "four hex digits" in str(error)
    else:
        assert all(1 <= found.line <= text.count("\n") + text.count("\r") + 1 for found in properties)
