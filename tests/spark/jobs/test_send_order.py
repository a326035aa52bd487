"""The order in which the rows of a branch are sent."""

from __future__ import annotations

import pyarrow as pa

from kohort.spark.epoch import ROWS_SCHEMA
from kohort.spark.jobs.send_order import in_common_order, in_order
from kohort.spark.program.internal_columns import PARTITION, STREAM_TIME


def _made(*rows: tuple[str, int | None], **order: list[int | None]) -> pa.Table:
    plain = [{"key": name.encode(), "value": b"", "timestamp": time} for name, time in rows]
    table = pa.Table.from_pylist(plain, schema=ROWS_SCHEMA)
    for name, values in order.items():
        table = table.append_column(name, pa.array(values, pa.int32() if name == PARTITION else pa.int64()))
    return table


def _names(table: pa.Table) -> str:
    assert table.schema == ROWS_SCHEMA
    return b"".join(table["key"].to_pylist()).decode()


def test_rows_go_as_if_partitions_had_been_read_side_by_side() -> None:
    """By stream time; those of a partition keep their order, though one has an earlier time than the one before."""
    rows = [("a", 7), ("b", 2), ("c", 9), ("d", 1), ("e", 8), ("f", 3)]
    partition: list[int | None] = [1, 1, 1, 0, 0, 0]
    made = _made(*rows, **{STREAM_TIME: [7, 7, 9, None, 8, 8]})
    assert _names(in_order(made)) == "dabefc"
    # Without their stream time they go by that of the rows which are left.
    assert _names(in_order(_made(*rows, **{PARTITION: partition}))) == "dabefc"
    assert _names(in_order(_made(*rows))) == "abcdef"


def test_partials_go_by_their_times() -> None:
    assert _names(in_order(_made(("a", 7), ("b", 2), ("c", 7), **{STREAM_TIME: [7, 2, 7]}))) == "bac"


def test_what_several_branches_send_to_a_topic_goes_as_if_it_were_one() -> None:
    """By stream time, then branch by branch; by what is left of it in a branch that has lost it."""
    one = _made(("a", 1), ("b", 9), ("c", 9), **{STREAM_TIME: [1, 9, 9]})
    other = _made(("d", 1), ("e", 5), ("f", 2), ("g", 9), **{STREAM_TIME: [1, 5, 5, 9]})
    assert _names(in_common_order([one, other])) == "adefbcg"
    lost = _made(("d", 1), ("e", 5), ("f", 2), ("g", 9), **{PARTITION: [0, 0, 0, 0]})
    assert _names(in_common_order([one, lost])) == "adefbcg"
    assert _names(in_common_order([one, _made(("d", 1))])) == "abcd"
