"""The order of rows by a column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def order_numbers(column: pa.Array) -> npt.NDArray[np.int64]:
    """Numbers from 0 that order values as Spark does, NaN last, and are equal for equal ones. There are no nulls."""
    if pa.types.is_floating(column.type):
        _, numbers = np.unique(column.to_numpy(), return_inverse=True)
        return numbers.astype(np.int64)
    encoded = column.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    ordered: npt.NDArray[np.int64] = ranks[encoded.indices.to_numpy()]
    return ordered


def group_numbers(keys: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """The group of each row as a number from 0, and the groups' keys. There are no nulls."""
    encoded = keys.dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary


def places_in_runs(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The place of each in the run of equal numbers, none of them negative, that it is in: 0 for the first."""
    begins = np.flatnonzero(np.diff(numbers, prepend=-1))
    return np.arange(len(numbers)) - np.repeat(begins, np.diff(begins, append=len(numbers)))


def counted(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """0, 1, … for each count, so many of them."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def distinct_pairs(
    first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The pairs of two columns, each once, in order. As ranks a pair fits into one number, which sorts much faster."""
    firsts, of_first = np.unique(first, return_inverse=True)
    seconds, of_second = np.unique(second, return_inverse=True)
    count = max(1, len(seconds))
    found = np.unique(of_first * count + of_second)
    return firsts[found // count], seconds[found % count]


def int64s(column: pa.Array) -> npt.NDArray[np.int64]:
    """A column of whole numbers without nulls."""
    numbers: npt.NDArray[np.int64] = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
