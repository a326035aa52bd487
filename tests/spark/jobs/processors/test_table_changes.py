from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark.jobs.processors.table_changes import TableChangesProcessor
from kohort.spark.program.internal_columns import DELETED, SIGN

from .tasks import epochs

SCHEMA = pa.schema(
    [pa.field("id", pa.string()), pa.field("n", pa.int64()), pa.field("x", pa.float64()), pa.field(DELETED, pa.bool_())]
)
KEPT = pa.schema([SCHEMA.field("n"), SCHEMA.field("x")])
Row = tuple[str, tuple[int | None, float | None] | None]

UPSERTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.none() | st.tuples(st.none() | st.integers(0, 2), st.sampled_from([None, 0.5, 1.0])),
    ),
    max_size=25,
)


def rows_of(upserts: list[Row]) -> list[dict[str, Any]]:
    return [
        {"id": key, "n": value and value[0], "x": value and value[1], DELETED: value is None, "_time": at}
        for at, (key, value) in enumerate(upserts)
    ]


def model(upserts: list[Row]) -> list[tuple[int, str, Any, Any]]:
    """The changes, one by one: the upsert that makes it, its key, the row before and the row after."""
    table: dict[str, Any] = {}
    changes = []
    for at, (key, value) in enumerate(upserts):
        before = table.get(key)
        if before != value:
            changes.append((at, key, before, value))
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    return changes


@settings(max_examples=150)
@given(UPSERTS, st.lists(st.integers(0, 5), max_size=6))
def test_a_change_takes_the_row_before_away_and_adds_the_row_after(upserts: list[Row], sizes: list[int]) -> None:
    given_rows: list[tuple[Any, ...]] = []
    start = 0
    for table, made in epochs(TableChangesProcessor(("id",), False), rows_of(upserts), SCHEMA, ["id"], KEPT, sizes):
        assert made.rows.column_names == ["id", "n", "x", SIGN]
        rows = made.rows.to_pylist()
        for row, of in zip(rows, made.of.to_pylist(), strict=True):
            given_rows.append((start + of, row["id"], (row["n"], row["x"]), row[SIGN]))
        start += table.num_rows
    expected = []
    for at, key, before, after in model(upserts):
        expected += [] if before is None else [(at, key, before, -1)]
        expected += [] if after is None else [(at, key, after, 1)]
    assert given_rows == expected


@settings(max_examples=150)
@given(UPSERTS, st.lists(st.integers(0, 5), max_size=6))
def test_changes_are_pairs_of_rows(upserts: list[Row], sizes: list[int]) -> None:
    found: list[tuple[Any, ...]] = []
    start = 0
    for table, made in epochs(TableChangesProcessor(("id",), True), rows_of(upserts), SCHEMA, ["id"], KEPT, sizes):
        for row, of in zip(made.rows.to_pylist(), made.of.to_pylist(), strict=True):
            before, after = (None if row[name] is None else tuple(row[name].values()) for name in ("before", "after"))
            found.append((start + of, row["id"], before, after))
            kind = "insert" if before is None else "delete" if after is None else "update"
            assert row["change"] == kind
        start += table.num_rows
    assert found == model(upserts)


@pytest.mark.parametrize("pairs", [False, True])
def test_a_table_of_nothing_but_its_key_is_set_and_deleted(pairs: bool) -> None:
    schema = pa.schema([SCHEMA.field("id"), SCHEMA.field(DELETED)])
    rows = [{"id": "a", DELETED: deleted, "_time": 0} for deleted in (False, False, True, True, False)]
    made = [
        each.rows.to_pylist()
        for _, each in epochs(TableChangesProcessor(("id",), pairs), rows, schema, ["id"], pa.schema([]), [2, 1])
    ]
    if pairs:
        assert made == [
            [{"id": "a", "change": "insert"}], [{"id": "a", "change": "delete"}], [{"id": "a", "change": "insert"}]
        ]  # fmt: skip
    else:
        assert made == [[{"id": "a", SIGN: 1}], [{"id": "a", SIGN: -1}], [{"id": "a", SIGN: 1}]]
