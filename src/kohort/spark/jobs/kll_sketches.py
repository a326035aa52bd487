"""KLL quantile sketches of many groups at once: made, merged and asked over Arrow columns.

They are those of Spark's kll_sketch_agg_bigint and kll_sketch_agg_double (Apache DataSketches): Spark reads what is
made here, and this what Spark made.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kohort.client.column_codec import load_compiled
from kohort.spark.formats import kll_kernels as kernels
from kohort.spark.formats.base64_columns import base64_texts, unbase64
from kohort.spark.formats.byte_columns import ByteColumn, Ints, byte_column, fixed

__all__ = ["load", "merged", "quantiles", "sketches"]

_LARGEST: Final = 2**31 - 1
_HEAD_BYTES: Final = 36  # of a sketch: all but its levels and what it keeps


@cache
def load() -> None:
    """Loads the compiled code, that of their texts too. Where none is cached, that takes some 15 s, which later
    processes are spared.
    """
    load_compiled(_call)


def _call() -> None:
    one = np.zeros(1, np.int64)
    made = merged(sketches(pa.array([0]), one, 1, 8, 0), one, 1, 8, True, 0)
    quantiles(unbase64(base64_texts(made)), [0.5], True)


def sketches(values: pa.Array, groups: Ints, count: int, k: int, seed: int) -> pa.Array:
    """A sketch of each group's values. O(values · log k + groups); nothing is done for a group in Python.

    Args:
        values: int64 or float64. Nulls and NaN are left out, as Spark does.
        groups: the group of each value, from 0 to `count` - 1, in any order.
        count: how many groups there are.
        k: size of the sketches, from 8 to 65535.
        seed: which values are dropped, once there are more than k, depends on it.

    Returns:
        binary, a sketch for each group, never null: that of a group without values is empty.

    Raises:
        ValueError: a group that there isn't, a k that can't be, more than 2 GiB of sketches.
        TypeError: values of another type.
    """
    whole = _whole(values.type)
    bits = _bits(values)
    groups = _groups(groups, len(values), count)
    there = None
    if values.null_count:
        there = values.is_valid().to_numpy(zero_copy_only=False)
    if not whole:
        nan = np.isnan(bits.view(np.float64))
        if nan.any():
            there = ~nan if there is None else there & ~nan
    if there is not None:
        bits, groups = bits[there], groups[there]
    sizes = np.bincount(groups, minlength=count)
    rows = _levels(int(sizes.max(initial=0)), 1)
    width = int(kernels.capacity(_k(k), kernels.M, rows))
    out = _out(sizes, rows, width)
    ends = np.empty(count + 1, np.int32)
    items, raw = _scratch(rows * width)
    kernels.make(_fixed(bits), _fixed(groups), _places(sizes), k, whole, _random(seed), items, raw, width, ends, out)
    return _binary(ends, out)


def merged(sketches: pa.Array, groups: Ints, count: int, k: int, whole: bool, seed: int) -> pa.Array:
    """The sketches of each group as one. O(bytes · log k + groups), and no more than O(k) for a full sketch.

    Args:
        sketches: binary. Null and empty ones change nothing.
        groups: the group of each sketch, from 0 to `count` - 1, in any order.
        count: how many groups there are.
        k: size of the results, from 8 to 65535. Their error is that of the smallest k of what has dropped values.
        whole: whether they are of BIGINT, or of DOUBLE: sketches don't say it.
        seed: as of `sketches`.

    Returns:
        binary, a sketch for each group, never null: that of a group without values is empty.

    Raises:
        ValueError: a sketch that isn't valid, with its row and what is wrong; a group with more than 2^63 - 1 values;
            as of `sketches`.
    """
    groups = _groups(groups, len(sketches), count)
    column, found = _inspected(sketches, whole)
    retained = found[:, kernels.RETAINED]
    kept = np.bincount(groups, retained, minlength=count).astype(np.int64)
    n = int(found[:, kernels.N].sum(dtype=np.float64))
    rows = _levels(n, int(found[:, kernels.LEVELS].max(initial=1)))
    room = int(kernels.capacity(_k(k), kernels.M, rows))
    largest = int(retained.max(initial=0))
    width = room + largest
    out = _out(kept, rows, room)
    ends = np.empty(count + 1, np.int32)
    items, raw = _scratch(rows * width)
    loaded, loaded_raw = _scratch(largest)
    row = kernels.merge(
        column.data, column.starts, column.there, found, _fixed(groups), _places(np.bincount(groups, minlength=count)),
        k, whole, _random(seed), loaded, loaded_raw, items, raw, width, ends, out,
    )  # fmt: skip
    if row >= 0:
        raise ValueError(f"row {row}: with this sketch its group has more than 2^63 - 1 values")
    return _binary(ends, out)


def quantiles(sketches: pa.Array, at: Sequence[float], whole: bool) -> list[pa.Array]:
    """The values at ranks, as Spark's kll_sketch_get_quantile_bigint and _double give them.

    O(r log r + ranks · log r) for a sketch that keeps r values.

    Args:
        sketches: binary.
        at: ranks from 0 to 1.
        whole: whether they are of BIGINT, or of DOUBLE.

    Returns:
        For each rank int64 or float64; null where the sketch is null or empty.

    Raises:
        ValueError: a sketch that isn't valid, with its row and what is wrong; a rank that can't be.
    """
    ranks = np.array(at, np.float64)
    if not ((ranks >= 0) & (ranks <= 1)).all():
        raise ValueError(f"{at!r}: ranks are numbers from 0 to 1")
    column, found = _inspected(sketches, whole)
    largest = int(found[:, kernels.RETAINED].max(initial=0))
    loaded, loaded_raw = _scratch(largest)
    answers = np.zeros((len(ranks), len(sketches)), np.int64)
    kernels.ask(
        column.data, column.starts, column.there, found, ranks, whole, loaded, loaded_raw, np.empty(largest, np.int64),
        answers,
    )  # fmt: skip
    there = column.there & (found[:, kernels.N] > 0)
    return [fixed(pa.int64() if whole else pa.float64(), each, there) for each in answers]


def _inspected(sketches: pa.Array, whole: bool) -> tuple[ByteColumn, Ints]:
    column = byte_column(sketches)
    found = np.zeros((len(sketches), 6), np.int64)
    faults = np.zeros(len(sketches), np.int8)
    kernels.inspect(column.data, column.starts, column.sizes, column.there, whole, found, faults)
    if faults.any():
        row = int(faults.nonzero()[0][0])
        raise ValueError(f"row {row}: not a KLL sketch that can be read: {kernels.FAULTS[faults[row]]}")
    return column, found


def _whole(kind: pa.DataType) -> bool:
    if not pa.types.is_int64(kind) and not pa.types.is_float64(kind):
        raise TypeError(f"sketches of {kind}: they are made of int64 and float64")
    return bool(pa.types.is_int64(kind))


def _k(k: int) -> int:
    if not kernels.M <= k <= 65535:
        raise ValueError(f"k={k!r}: k is a whole number from 8 to 65535")
    return k


def _bits(values: pa.Array) -> Ints:
    """All of them as int64, nulls too."""
    content = values.buffers()[1]
    if not len(values) or content is None:
        return np.zeros(len(values), np.int64)
    return np.frombuffer(content, np.int64, len(values), 8 * values.offset)


def _groups(groups: Ints, rows: int, count: int) -> Ints:
    """Checked, as compiled code would write anywhere."""
    groups = np.ascontiguousarray(groups, np.int64)
    if groups.shape != (rows,):
        raise ValueError(f"{rows} rows have groups of shape {groups.shape}")
    if rows and not 0 <= int(groups.min()) <= int(groups.max()) < count:
        raise ValueError(f"groups from {groups.min()} to {groups.max()}, where there are {count}")
    return groups


def _levels(n: int, at_least: int) -> int:
    """How many levels a sketch of n values can have, if none that went into it has more than `at_least`.

    A level is added when the highest has 8 values at least.
    """
    return min(max(n.bit_length(), at_least) + 1, kernels.MOST_LEVELS)


def _out(kept: Ints, rows: int, room: int) -> Ints:
    """Room for sketches that keep so many values of so many at most; what isn't written to takes no memory."""
    size = (_HEAD_BYTES + 4 * rows) * len(kept) + 8 * int(np.minimum(kept, room).sum())
    if size > _LARGEST:
        raise ValueError(f"{len(kept)} sketches of up to {size} bytes in all: a column has room for {_LARGEST}")
    return np.empty(size, np.uint8)


def _places(sizes: Ints) -> Ints:
    places = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=places[1:])
    return places


def _scratch(size: int) -> tuple[Ints, Ints]:
    items: Any = np.empty(size, np.int64)
    return items, items.view(np.uint8)


def _fixed(array: Ints) -> Ints:
    """Not to be written to: compiled code is another one for arrays that can be."""
    array = array.view()
    array.flags.writeable = False
    return array


def _random(seed: int) -> Ints:
    """What chance starts from: never 0, where it would stay, and far apart for seeds that are close."""
    mask = 2**64 - 1
    state = (seed + 0x9E3779B97F4A7C15) & mask
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & mask
    return np.array([state ^ (state >> 31) or 1], np.uint64)


def _binary(ends: Ints, out: Ints) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, pa.py_buffer(ends), pa.py_buffer(out[: ends[-1]])])
