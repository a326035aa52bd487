from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kohort.cli.demo.records import as_records

TABLE = pa.table(
    {
        "carrier": ["UA", "B6"],
        "delay": pa.array([None, -3], pa.int64()),
        "wind": [10.357019999999999, None],
        "at": pa.array([datetime(2013, 1, 1, 10, tzinfo=UTC)] * 2, pa.timestamp("s", "UTC")),
    }
)


def test_a_row_is_an_object_and_what_is_unknown_is_null() -> None:
    records = as_records(TABLE, "carrier")
    assert records["key"].to_pylist() == ["UA", "B6"]
    assert [json.loads(value) for value in records["value"].to_pylist()] == [
        {"carrier": "UA", "delay": None, "wind": 10.357019999999999, "at": "2013-01-01T10:00:00Z"},
        {"carrier": "B6", "delay": -3, "wind": None, "at": "2013-01-01T10:00:00Z"},
    ]


def test_several_columns_make_an_object_of_a_key() -> None:
    assert as_records(TABLE, ("carrier", "at"))["key"][0].as_py() == '{"carrier":"UA","at":"2013-01-01T10:00:00Z"}'


@given(st.lists(st.none() | st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"])), min_size=1))
def test_any_text_comes_back(texts: list[str | None]) -> None:
    table = pa.table({"key": ["k"] * len(texts), "text": pa.array(texts, pa.string())})
    assert [json.loads(value)["text"] for value in as_records(table, "key")["value"].to_pylist()] == texts
