"""What functions of the user's give is made of the types that are wanted, or told column by column."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kohort.spark.jobs.function_results import typed, written_in

WANTED = pa.schema([pa.field("k", pa.string(), nullable=False), pa.field("n", pa.int32())])


def test_columns_are_cast_and_others_left_out() -> None:
    given = pa.table({"n": pa.array([1, None], pa.int64()), "more": ["x", "y"], "k": ["a", "b"]})
    assert typed(given, WANTED) == pa.table([["a", "b"], pa.array([1, None], pa.int32())], schema=WANTED)


WRONG = {
    "another type": (pa.table({"k": ["a"], "n": [[1]]}), "column 'n' is list<item: int64>, and must be int32: "),
    "a number too large": (
        pa.table({"k": ["a"], "n": [2**40]}),
        "column 'n' is int64, and must be int32: .* not in range",
    ),
    "a null": (pa.table({"k": pa.array([None], pa.string()), "n": [1]}), "column 'k' has nulls, and must have none"),
    "a column twice": (pa.table([["a"], ["b"], [1]], names=["k", "k", "n"]), "column 'k' is there twice"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_column_that_does_not_fit_is_named_with_both_types(name: str) -> None:
    given, told = WRONG[name]
    with pytest.raises(TypeError, match=told):
        typed(given, WANTED)


def test_functions_know_their_line() -> None:
    assert written_in(test_functions_know_their_line).startswith(f" ({__file__}, line ")
    assert written_in(print) == ""
