from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark.jobs.processors.latest import LatestProcessor
from kohort.spark.jobs.processors.ordering import order_numbers

from .tasks import epochs

SCHEMA = pa.schema([pa.field("user", pa.string()), pa.field("at", pa.int64()), pa.field("n", pa.int64())])
AT = pa.schema([SCHEMA.field("at")])


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.none() | st.integers(-3, 3)), max_size=25),
    st.lists(st.integers(0, 5), max_size=6),
    st.booleans(),
)
def test_rows_pass_that_are_the_last_or_first_so_far(
    some: list[tuple[str | None, int | None]], sizes: list[int], earliest: bool
) -> None:
    rows = [{"user": user, "at": at, "n": n, "_time": n} for n, (user, at) in enumerate(some)]
    passed: list[int] = []
    dropped = 0
    for table, made in epochs(LatestProcessor("at", earliest), rows, SCHEMA, ["user"], AT, sizes):
        assert table.take(made.of).equals(made.rows)
        passed += made.rows["n"].to_pylist()
        dropped += sum(count for _, count in made.dropped)
    best: dict[str | None, int] = {}
    expected = []
    for n, (user, at) in enumerate(some):
        if at is not None and (user not in best or (at < best[user] if earliest else at >= best[user])):
            best[user] = at
            expected.append(n)
    assert passed == expected
    assert dropped == sum(at is None for _, at in some)


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["b", "a", "é", "b"]),
        pa.array([True, False]),
        pa.array([3, -1, 2**62], pa.int64()),
        pa.array([1.5, float("nan"), -0.0, 0.0, float("-inf"), float("inf")]),
        pa.array(["1.50", "-2.25"]).cast(pa.decimal128(10, 2)),
        pa.array([3, 1, 2], pa.date32()),
        pa.array([3, 1, 2], pa.timestamp("us", "UTC")),
        pa.array([], pa.string()),
    ],
    ids=lambda values: str(values.type),
)
def test_values_of_any_type_have_an_order(values: pa.Array) -> None:
    numbers = order_numbers(values)
    plain: list[Any] = [np.inf if each != each else each for each in values.to_pylist()]
    for one, first in zip(numbers, plain, strict=True):
        for other, second in zip(numbers, plain, strict=True):
            if first != np.inf or second != np.inf:
                assert (one < other) == (first < second)


def test_no_number_is_the_greatest_of_all_and_equal_to_itself() -> None:
    numbers = order_numbers(pa.array([float("nan"), float("inf"), float("nan"), 0.0, -0.0])).tolist()
    assert numbers == [2, 1, 2, 0, 0]
