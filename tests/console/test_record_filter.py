from __future__ import annotations

import pytest

from kohort.console.record_decoding import RecordDecoder
from kohort.console.record_filter import FieldTest, RecordFilter, parse_field
from kohort.console.record_ranges import ChoiceError

KEY = b'{"id": "JFK", "n": 7}'
VALUE = b'{"a": {"b": 7, "f": 1.5, "t": true, "z": null, "s": "Seven", "q": "7"}, "list": [{"x": "y"}]}'
HEADERS = [("h", b"one"), ("h", b"two"), ("none", None)]


def passes(**fields: str) -> bool:
    decoder = RecordDecoder()
    return RecordFilter.of(fields)(decoder.key("t", KEY), decoder.value("t", KEY, VALUE), HEADERS)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("key", "jfk", True), ("key", "lax", False), ("key_is", '{"id":"JFK","n":7}', True), ("key_is", "JFK", False),
        ("value", "seven", True), ("value", '"b":7', True), ("value", "eight", False),
        ("field", "a.b = 7", True), ("field", "a.b = 7.0", True), ("field", "a.b=8", False),
        ("field", "a.b != 8", True),
        ("field", "a.f = 1.5", True), ("field", "a.t = true", True), ("field", "a.t = 1", False),
        ("field", "a.z = null", True), ("field", "a.s = Seven", True), ("field", 'a.s = "Seven"', True),
        ("field", "a.q = 7", True), ("field", "list.0.x = y", True), ("field", "list.1.x = y", False),
        ("field", "a.missing != 1", False), ("field", "a.b.c = 1", False),
        ("header", "h", True), ("header", "h = two", True), ("header", "h=three", False), ("header", "x", False),
        ("header", "none=", True),
    ],
)  # fmt: skip
def test_records_pass_that_have_what_is_wanted(name: str, text: str, expected: bool) -> None:
    assert passes(**{name: text}) is expected


def test_all_of_it_is_wanted() -> None:
    assert passes(key="JFK", field="a.b = 7", header="h")
    assert not passes(key="JFK", field="a.b = 8", header="h")
    assert passes()
    assert not RecordFilter.of({})


def test_the_first_sign_counts() -> None:
    assert parse_field("url = https://x?a!=b") == FieldTest(("url",), "https://x?a!=b", equal=True)
    assert parse_field("url != x?a=b") == FieldTest(("url",), "x?a=b", equal=False)


@pytest.mark.parametrize("text", ["a.b", "= 7", "a..b = 7", "a b", "!= 3"])
def test_what_tests_nothing_is_refused(text: str) -> None:
    with pytest.raises(ChoiceError, match="tests no field"):
        parse_field(text)


def test_what_is_searched_for_has_a_limit() -> None:
    with pytest.raises(ChoiceError, match="1,000 are searched for at most"):
        RecordFilter.of({"value": "x" * 1_001})
