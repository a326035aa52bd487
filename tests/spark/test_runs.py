"""Rows by a number that each has."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.runs import runs_of


@given(numbers=st.lists(st.integers(-(2**31), 3), max_size=30))
def test_each_number_has_one_run_with_its_rows_in_their_order(numbers: list[int]) -> None:
    order, runs = runs_of(np.array(numbers, np.int32))
    assert [number for number, _, _ in runs] == sorted(set(numbers))
    for number, start, end in runs:
        assert order[start:end].tolist() == [row for row, each in enumerate(numbers) if each == number]
