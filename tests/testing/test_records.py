"""What a test writes down becomes records of bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.testing.records import NewRecord, records_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), lambda inner: st.lists(inner, max_size=3)
)


def test_values_are_bytes_text_or_json() -> None:
    given = [b"\x00", "Grüße", {"n": 1}, [1, 2], 3, None]
    values = [record.value for record in records_of(given)]
    assert values == [b"\x00", "Grüße".encode(), b'{"n":1}', b"[1,2]", b"3", None]


def test_values_that_json_has_no_word_for_are_text_and_keys_without_quotes() -> None:
    number = UUID(int=7)
    given = [{"id": number, "price": Decimal("1.10"), "at": datetime(2026, 1, 2, tzinfo=UTC), "raw": b"\xff"}]
    (record,) = records_of(given, key="id")
    assert record.key == str(number).encode()
    assert json.loads(record.value) == {"id": str(number), "price": "1.10", "at": "2026-01-02T00:00:00Z", "raw": "/w=="}
    assert records_of([(number, {"x": float("nan")})]) == [NewRecord(b'{"x":null}', str(number).encode())]
    assert records_of([(memoryview(b"k"), bytearray(b"v"))]) == [NewRecord(b"v", b"k")]


def test_a_field_of_a_dataclass_may_be_the_key() -> None:
    @dataclass
    class Order:
        id: int

    assert records_of([Order(7)], key="id") == [NewRecord(b'{"id":7}', b"7")]


def test_pairs_have_keys_and_records_have_all() -> None:
    whole = NewRecord({"n": 2}, 7, timestamp_ms=5, partition=1, headers={"trace": b"x"})
    assert records_of([("alice", b"tea"), whole]) == [
        NewRecord(b"tea", b"alice"),
        NewRecord(b'{"n":2}', b"7", timestamp_ms=5, partition=1, headers={"trace": b"x"}),
    ]


@given(st.lists(st.dictionaries(st.text(max_size=3), JSON, max_size=3), max_size=5))
def test_a_field_may_be_the_key(rows: list[dict[str, Any]]) -> None:
    rows = [row | {"id": f"é{number}"} for number, row in enumerate(rows)]
    records = records_of(rows, key="id")
    assert [json.loads(record.value) for record in records] == rows
    assert [record.key for record in records] == [row["id"].encode() for row in rows]


def test_a_record_without_a_value_needs_no_field() -> None:
    assert records_of([("alice", None), None], key="id") == [NewRecord(None, b"alice"), NewRecord()]


def test_json_lines_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "orders.jsonl"
    file.write_text('{"id": 1,  "item": "tea"}\n\n{"id": 2}\n')
    assert records_of(file, key="id") == [NewRecord(b'{"id": 1,  "item": "tea"}', b"1"), NewRecord(b'{"id": 2}', b"2")]


@pytest.mark.parametrize(
    ("name", "lines"),
    [("a.jsonl", [b"[1, 2]", b"[3]"]), ("a.json", [b"[1]", b'["a"]']), ("a.jsonl", [b"[1, 2]"]), ("a.json", [b"3"])],
)
def test_records_of_a_file_may_be_arrays(name: str, lines: list[bytes], tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\n".join(lines) + b"\n")
    assert [record.value for record in records_of(tmp_path / name)] == lines


def test_rows_of_csv_are_objects_of_text(tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    file.write_text('id,item\n1,"tea, two\ncups"\n\n2,\n')
    assert [(record.key, json.loads(record.value)) for record in records_of(file, key="id")] == [
        (b"1", {"id": "1", "item": "tea, two\ncups"}),
        (b"2", {"id": "2", "item": ""}),
    ]


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.jsonl", '{"id": 1}\nnot', r"a\.jsonl, line 2 isn't JSON"),
        ("a.jsonl", '{"n": 1}', r"a\.jsonl, line 1 has no field 'id' for its key"),
        ("a.csv", "id,n\n1", r"a\.csv, line 2: 2 fields wanted, as in the first line, and there are 1"),
        ("a.csv", "id,id\n1,2", r"a\.csv: two columns have one name: id, id"),
        ("a.json", '[{"id": 1}, {"id": 2}]', r"a\.json is an array; records are one a line \(JSON Lines\)"),
        ("a.json", '\n[\n  {"id": 1},\n  {"id": 2}\n]\n', r"a\.json is an array; records are one a line"),
        ("a.jsonl", '[\n  {"id": 1},\n  {"id": 2}\n]\n', r"a\.jsonl is an array; records are one a line"),
        ("a.txt", "", r"a\.txt: records are read from \.json, \.jsonl, \.ndjson and \.csv"),
    ],
)
def test_what_a_file_can_not_mean_is_told_with_its_place(name: str, text: str, what: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=what):
        records_of(tmp_path / name, key="id")


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        ({"headers": {"tries": 7}}, "the header 'tries' is 7; a name is text, a value bytes or None"),
        ({"headers": {b"trace": b"x"}}, "the header b'trace' is b'x'; a name is text"),
        ({"headers": [("trace", b"x")]}, r"headers are a dict of names and bytes, not \[\('trace', b'x'\)\]"),
        ({"timestamp_ms": timedelta(1)}, "timestamp_ms is a whole number, not datetime.timedelta"),
        ({"partition": "0"}, "partition is a whole number, not '0'"),
    ],
)
def test_a_part_of_another_type_is_told_with_the_record(parts: Any, what: str) -> None:
    with pytest.raises(ValueError, match=f"^record 1: {what}"):
        records_of([b"tea", NewRecord(**parts)])


@pytest.mark.parametrize("given", ["orders.jsonl", b"tea", {"n": 1}, [(1, 2, 3)]])
def test_what_is_no_list_of_records_is_told(given: Any) -> None:
    with pytest.raises(ValueError, match=r"a list or a Path|a tuple is \(key, value\)"):
        records_of(given)


def test_a_line_of_a_file_is_json_without_a_key_too(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("no\n")
    with pytest.raises(ValueError, match="line 1 isn't JSON"):
        records_of(tmp_path / "a.jsonl")


def test_what_cannot_become_json_is_named() -> None:
    with pytest.raises(ValueError, match=r"^record 1 can't become JSON: .*complex"):
        records_of([{"id": 1}, {"id": 1j}])
    with pytest.raises(ValueError, match=r"not 3$"):
        records_of(3)  # type: ignore[arg-type]
