"""What instances answer, whoever they are: endpoints, paths and answers."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.console.record_ranges import ChoiceError
from kohort.console.store_answers import AnswerError, StoreChoice, endpoints, refusal, rows, stores
from tests.console.test_placement_words import described, member

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["stores", "rows", "store", "key", "value", "next", "missing", "copies", "here", "name"]),
            inner,
        )
    ),
    max_leaves=12,
)


def addresses(host: str, port: int = 80) -> list[str]:
    one = member("m", {}, {})
    assert one.streams is not None
    return [*endpoints(described(replace(one, streams=replace(one.streams, endpoint=(host, port))))).values()]


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("streams-1.example", "http://streams-1.example:80"),
        ("10.1.2.3", "http://10.1.2.3:80"),
        ("::1", "http://[::1]:80"),
        ("::ffff:10.1.2.3", "http://10.1.2.3:80"),
    ],
)
def test_where_members_answer(host: str, url: str) -> None:
    assert addresses(host) == [url]


@pytest.mark.parametrize(
    "host",
    [
        "", "a/b", "a?b", "a#b", "user@a", "a:1", "a b", "a\n", "é.example",
        "-a", "[::1]", "169.254.169.254", "0.0.0.0",
        "::ffff:169.254.169.254", "fe80::1", "fe80::1%eth0", "224.0.0.1", "2852039166", "0xA9FEA9FE", "169.254.43518",
        "0x",
    ],
)  # fmt: skip
def test_what_is_no_address_isnt_asked(host: str) -> None:
    assert addresses(host) == []


@given(st.text())
def test_a_host_is_a_host_and_no_more(host: str) -> None:
    for url in addresses(host):
        parts = urlsplit(url)
        assert (parts.scheme, parts.port or 80, parts.path, parts.query, parts.username) == ("http", 80, "", "", None)


def test_a_port_that_is_none() -> None:
    assert addresses("a", 0) == addresses("a", 65_536) == []


@given(st.dictionaries(st.sampled_from(["store", "key", "prefix", "from", "to", "after"]), st.text(max_size=30)))
def test_a_path_leads_to_stores_whatever_is_filled_in(fields: dict[str, str]) -> None:
    try:
        path = StoreChoice.of(fields).path
    except ChoiceError:
        assert {fields.get("store"), fields.get("key")} & {".", ".."}
        return
    assert path.isascii()
    assert path.isprintable()
    assert " " not in path
    assert "#" not in path
    assert path == "/stores" or path.startswith("/stores/")
    assert len(urlsplit(path).path.split("/")) <= 4


@pytest.mark.parametrize("fields", [{"store": ".."}, {"store": "."}, {"store": "s", "key": ".."}, {"key": "."}])
def test_no_path_leads_away_from_stores(fields: dict[str, str]) -> None:
    with pytest.raises(ChoiceError, match="can't be asked for"):
        StoreChoice.of(fields)


def test_paths() -> None:
    assert StoreChoice.of({"store": "a/b", "key": "JFK@2013/é"}).path == "/stores/a%2Fb/JFK%402013%2F%C3%A9?stale=true"
    choice = StoreChoice.of({"store": "s", "prefix": "U", "after": "%FF"})
    assert choice.path == "/stores/s?limit=50&stale=true&partial=true&prefix=U&after=%FF"
    assert choice.next("%00") == {"store": "s", "prefix": "U", "after": "%00"}


def test_answers_of_instances() -> None:
    here = [{"partition": 1, "role": "active", "lag": 0}]
    entry = {"name": "s", "key": {"origin": "string"}, "subtopology": "1", "partitions": 4, "here": here}
    answer = json.dumps({"instance": "a:1", "stores": [entry]}).encode()
    assert stores(answer) == [("s", "origin (string)", "1", "4", "1 active")]
    page = {"store": "s", "rows": [{"key": {"k": 1}, "value": "v\u202e"}], "next": "/stores/s?limit=1&after=%7B"}
    missing = [{"partition": 2, "reason": "it is dead"}]
    found = rows(json.dumps({**page, "missing": missing, "copies": []}).encode())
    assert found.rows == [('{"k": 1}', "v\\u202e")]
    assert (found.after, found.notes) == ("%7B", ["Partition 2 is missing: it is dead"])
    one = {"store": "s", "partition": 1, "instance": "a:1", "role": "active", "lag": 0, "key": "k", "value": 3}
    assert rows(json.dumps(one).encode()).rows == [("k", "3")]
    assert refusal(b'{"error":"no such key","message":"s has no key"}') == "s has no key"


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_answer_is_taken_apart_or_refused(answer: bytes) -> None:
    for parse in (stores, rows, refusal):
        with contextlib.suppress(AnswerError):
            parse(answer)


def test_an_answer_that_is_nested_too_deeply() -> None:
    with pytest.raises(AnswerError):
        rows(b"[" * 200_000)
