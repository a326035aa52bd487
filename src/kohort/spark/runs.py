"""Rows by a number that each has, such as its partition."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np


class Run(NamedTuple):
    """Rows with the same number: from `start` to `end` (exclusive), in the order of `runs_of`."""

    number: int
    start: int
    end: int


def runs_of(numbers: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[Run]]:
    """The order of rows by their numbers, each number's in the order that they have, and its runs. Takes O(n log n)."""
    order = np.argsort(numbers, kind="stable")
    in_order = numbers[order]
    bounds = [0, *(np.flatnonzero(np.diff(in_order)) + 1).tolist(), len(numbers)] if len(numbers) else []
    return order, [Run(int(in_order[start]), start, end) for start, end in pairwise(bounds)]
