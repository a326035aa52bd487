from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.jobs.processors.ordering import distinct_pairs

NUMBERS = st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.tuples(NUMBERS, NUMBERS)))
def test_distinct_pairs_are_in_order_each_once(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, np.int64).reshape(-1, 2).T
    one, other = distinct_pairs(first, second)
    assert list(zip(one.tolist(), other.tolist(), strict=True)) == sorted(set(pairs))
