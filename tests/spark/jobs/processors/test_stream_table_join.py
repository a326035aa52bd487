"""Joins of a stream to a table's upserts, beside a model that goes row by row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark.jobs.processors.stream_table_join import StreamTableJoinProcessor
from kohort.spark.program.internal_columns import DELETED
from kohort.spark.program.operations import RIGHT, SIDE
from kohort.spark.program.table_operations import StreamTableJoin

from .one_task import OneTask, cut

SCHEMA = pa.schema(
    [("k", pa.string()), (SIDE, pa.int32()), ("_left0", pa.int64()), ("_right0", pa.int64()), (DELETED, pa.bool_())]
)
OUTPUT = pa.schema([("k", pa.string()), ("n", pa.int64()), ("name", pa.int64())])


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["inner", "left"]),
    st.lists(st.tuples(st.sampled_from(["row", "upsert", "deletion"]), st.sampled_from(["x", "y", None])), max_size=25),
    st.lists(st.integers(0, 5), max_size=6),
)
def test_a_row_meets_the_table_as_it_is_when_the_row_comes(
    how: str, drawn: list[tuple[str, str | None]], sizes: list[int]
) -> None:
    rows: list[dict[str, Any]] = []
    table: dict[str, int] = {}
    expected = []
    for number, (what, key) in enumerate(drawn):
        if what == "row":
            rows.append({"k": key, SIDE: 0, "_left0": number})
            if how == "left" or (key is not None and key in table):
                expected.append((key, number, None if key is None else table.get(key)))
            continue
        gone = what == "deletion"
        rows.append({"k": key, SIDE: 1, "_right0": None if gone else number, DELETED: gone})
        if key is not None and gone:
            table.pop(key, None)
        elif key is not None:
            table[key] = number
    processor = StreamTableJoinProcessor(StreamTableJoin(("k",), ("k", "_left0"), ("_right0",), how), OUTPUT)
    task = OneTask(processor, SCHEMA, ["k"], {RIGHT: pa.schema([("_right0", pa.int64())])})
    made = [row for part in cut(rows, sizes) for row in task.epoch(part)]
    assert [(row["k"], row["n"], row["name"]) for row in made] == expected
    assert len(task.stores[RIGHT].rows) == len(table)
