"""KLL sketches over columns, beside sorted values and a reader of their bytes that is written apart."""

from __future__ import annotations

import itertools
import math
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kohort.spark.jobs.kll_sketches import merged, quantiles, sketches

LONGS = st.integers(-(2**63), 2**63 - 1)
EMPTY = bytes.fromhex("02010f01c8000800")
RANKS = (0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0)


@dataclass(frozen=True)
class Read:
    """What a sketch's bytes say."""

    k: int
    n: int
    min_k: int
    levels: list[tuple[Any, ...]]
    low: Any = None
    high: Any = None


def room(k: int, levels: int) -> int:
    return sum(max(8, math.floor(k * Fraction(2, 3) ** depth + Fraction(1, 2))) for depth in range(levels))


def read(sketch: bytes, kind: str) -> Read:
    """Holds a sketch to all that is promised of it."""
    ints, version, family, flags, k, m, _ = struct.unpack_from("<BBBBHBB", sketch)
    assert (family, m) == (15, 8)
    if flags == 1:
        assert (ints, version, len(sketch)) == (2, 1, 8)
        return Read(k, 0, k, [])
    if flags == 4:
        assert (ints, version, len(sketch)) == (2, 2, 16)
        (value,) = struct.unpack_from(f"<{kind}", sketch, 8)
        return Read(k, 1, k, [(value,)], value, value)
    assert (ints, version, flags) == (5, 1, 0)  # level 0 isn't sorted
    n, min_k, count, unused = struct.unpack_from("<qHBB", sketch, 8)
    assert n > 1
    assert unused == 0
    places = [*struct.unpack_from(f"<{count}i", sketch, 20), room(k, count)]
    low, high, *items = struct.unpack_from(f"<{2 + places[-1] - places[0]}{kind}", sketch, 20 + 4 * count)
    assert len(sketch) == 36 + 4 * count + 8 * len(items)
    assert places[0] >= 0
    assert places == sorted(places)
    levels = [tuple(items[start - places[0] : end - places[0]]) for start, end in itertools.pairwise(places)]
    assert sum(len(level) << index for index, level in enumerate(levels)) == n
    assert all(list(level) == sorted(level) for level in levels[1:])
    assert all(low <= item <= high for item in items)
    return Read(k, n, min_k, levels, low, high)


def column(values: Sequence[Any], kind: str) -> pa.Array:
    return pa.array(values, pa.int64() if kind == "q" else pa.float64())


def one(values: Any, k: int = 200, kind: str = "q", seed: int = 1) -> bytes:
    """A sketch of them all."""
    (made,) = sketches(column(values, kind), np.zeros(len(values), np.int64), 1, k, seed).to_pylist()
    assert isinstance(made, bytes)
    return made


def together(parts: Sequence[bytes | None], k: int = 200, kind: str = "q", seed: int = 1) -> bytes:
    groups = np.zeros(len(parts), np.int64)
    (made,) = merged(pa.array(parts, pa.binary()), groups, 1, k, kind == "q", seed).to_pylist()
    assert isinstance(made, bytes)
    return made


def asked(sketch: bytes | None, ranks: Sequence[float] = RANKS, kind: str = "q") -> list[Any]:
    return [each.to_pylist()[0] for each in quantiles(pa.array([sketch], pa.binary()), ranks, kind == "q")]


def exact(values: Sequence[Any], ranks: Sequence[float] = RANKS) -> list[Any]:
    ordered = sorted(values)
    return [ordered[max(math.ceil(Fraction(str(rank)) * len(ordered)) - 1, 0)] for rank in ranks]


@pytest.mark.parametrize("kind", ["q", "d"])
def test_few_values_are_all_kept(kind: str) -> None:
    made = sketches(column([5, 3, None, 4, 7], kind), np.array([2, 0, 1, 2, 2]), 4, 200, 1)
    assert made.type == pa.binary()
    first, second, third, fourth = (read(sketch, kind) for sketch in made.to_pylist())
    assert first == Read(200, 1, 200, [(3,)], 3, 3)
    assert second == fourth == Read(200, 0, 200, [])
    assert third == Read(200, 3, 200, [(5, 4, 7)], 4, 7)
    assert made.to_pylist()[1] == EMPTY


@settings(max_examples=50)
@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.none() | LONGS), max_size=60),
    k=st.sampled_from([8, 50, 200]),
    cut=st.integers(0, 3),
)
def test_sketches_of_groups_hold_their_values(rows: list[tuple[int, int | None]], k: int, cut: int) -> None:
    values = pa.array([value for _, value in rows], pa.int64())[cut:]
    rows = rows[cut:]
    made = sketches(values, np.array([group for group, _ in rows], np.int64), 5, k, 7)
    answers = quantiles(made, RANKS, True)
    for group, sketch in enumerate(made.to_pylist()):
        inside = [value for of, value in rows if of == group and value is not None]
        found = read(sketch, "q")
        assert (found.k, found.n, found.min_k) == (k, len(inside), k)
        if inside:
            assert (found.low, found.high) == (min(inside), max(inside))
        if len(inside) <= k:
            assert sorted(sum(found.levels, ())) == sorted(inside)
            assert [each[group].as_py() for each in answers] == (exact(inside) if inside else [None] * len(RANKS))


@given(st.lists(st.none() | st.floats(), max_size=40))
@example([math.nan, -0.0, 0.0, math.inf, -math.inf, None, 5e-324, -5e-324])
def test_doubles_are_in_order_and_nan_is_left_out(values: list[float | None]) -> None:
    there = [value for value in values if value is not None and not math.isnan(value)]
    sketch = one(values, 200, "d")
    found = read(sketch, "d")
    assert found.n == len(there)
    kept = [value for level in found.levels for value in level]
    assert [struct.pack("d", value) for value in kept] == [struct.pack("d", value) for value in there]
    assert asked(sketch, kind="d") == (exact(there) if there else [None] * len(RANKS))


@settings(max_examples=50)
@given(
    parts=st.lists(
        st.tuples(st.integers(0, 700), st.sampled_from([8, 30, 200, 1000]), st.booleans()), min_size=1, max_size=6
    ),
    k=st.sampled_from([8, 30, 200, 1000]),
    kind=st.sampled_from(["q", "d"]),
)
@example([(5000, 200, False), (1, 200, False), (3000, 1000, True)], 8, "q")
def test_merged_sketches_keep_what_is_promised(parts: list[tuple[int, int, bool]], k: int, kind: str) -> None:
    """Sketches of any sizes, one by one or all at once: those that dropped values hand on their k as an error."""
    random = np.random.default_rng(1)
    values = [random.normal(size=size) if kind == "d" else random.integers(-9, 10**9, size) for size, _, _ in parts]
    each: list[bytes | None] = []
    for (_, own_k, alone), inside in zip(parts, values, strict=True):
        each.append(one(inside, own_k, kind))
        if alone:
            each = [together([*each, None], k, kind)]
    found = read(together(each, k, kind), kind)
    everything = np.concatenate(values)
    dropping = [own_k for size, own_k, _ in parts if size > own_k]
    assert (found.k, found.n) == (k, len(everything))
    assert min([k, *dropping]) == found.min_k
    if len(everything):
        assert (found.low, found.high) == (everything.min(), everything.max())
    if len(everything) <= k and not dropping:
        assert sorted(sum(found.levels, ())) == sorted(everything.tolist())


def test_nothing_merged_is_an_empty_sketch() -> None:
    made = merged(pa.array([None, EMPTY], pa.binary()), np.array([0, 2]), 4, 50, True, 1)
    assert made.to_pylist() == [bytes.fromhex("02010f0132000800")] * 4
    assert merged(pa.array([], pa.binary()), np.array([], np.int64), 0, 50, True, 1).to_pylist() == []
    assert sketches(pa.array([], pa.int64()), np.array([], np.int64), 0, 50, 1).to_pylist() == []


def test_nothing_is_said_of_what_is_null_or_empty() -> None:
    answers = quantiles(pa.array([None, EMPTY, one([3])], pa.binary()), [0.5, 1], True)
    assert [each.to_pylist() for each in answers] == [[None, None, 3]] * 2
    assert [each.type for each in answers] == [pa.int64()] * 2
    assert quantiles(pa.array([EMPTY], pa.binary()), [0.5], False)[0].type == pa.float64()
    assert quantiles(pa.array([EMPTY], pa.binary()), [], False) == []


@pytest.mark.parametrize("order", ["random", "rising", "falling", "equal"])
@pytest.mark.parametrize("pieces", [1, 40])
def test_ranks_of_many_values_are_nearly_right(order: str, pieces: int) -> None:
    values = np.random.default_rng(5).permutation(100_000)
    values = {"rising": np.sort(values), "falling": -np.sort(-values), "equal": values // 50_000}.get(order, values)
    groups = np.arange(len(values)) % pieces
    parts = sketches(pa.array(values), groups, pieces, 200, 3)
    sketch = merged(parts, np.zeros(pieces, np.int64), 1, 200, True, 4).to_pylist()[0]
    assert read(sketch, "q").n == len(values)
    ranks = np.linspace(0, 1, 101)
    answers = np.array(asked(sketch, ranks.tolist()))
    ordered = np.sort(values)
    below = np.searchsorted(ordered, answers, "left") / len(values)
    up_to = np.searchsorted(ordered, answers, "right") / len(values)
    assert np.maximum(below - ranks, ranks - up_to).max() < 0.03
    assert (answers[0], answers[-1]) == (ordered[0], ordered[-1])


def test_ranks_are_right_on_average() -> None:
    """Chance has no side: over many seeds, errors cancel out, as those of sketches that are merged have to."""
    values = np.arange(3000)
    weights = np.zeros(len(values))
    seeds = range(400)
    for seed in seeds:
        for level, kept in enumerate(read(one(values, 8, seed=seed), "q").levels):
            np.add.at(weights, list(kept), 2.0**level)
    ranks = weights.cumsum() / len(seeds) / len(values)
    assert np.abs(ranks - (values + 1) / len(values)).max() < 0.02


def test_a_seed_decides() -> None:
    values = list(range(1000))
    assert one(values, seed=1) == one(values, seed=1)
    assert len({one(values, 8, seed=seed) for seed in range(-5, 15)}) == 20
    both = [one(values, 8), one(values, 8, seed=2)]
    assert together(both, 8, seed=1) == together(both, 8, seed=1)
    assert len({together(both, 8, seed=seed) for seed in range(20)}) > 10


def test_groups_stay_apart() -> None:
    """Many groups of any size among each other: each has its own values and no others'."""
    random = np.random.default_rng(2)
    groups = np.repeat(np.arange(300), random.integers(0, 60, 300))
    random.shuffle(groups)
    values = groups * 1000 + random.integers(0, 1000, len(groups))
    made = sketches(pa.array(values), groups, 300, 8, 1)
    numbers = random.permutation(np.tile(np.arange(300), 3)) // 2
    parts = pa.array([made[int(number)].as_py() for number in numbers], pa.binary())
    whole = merged(parts, numbers, 150 + 150, 8, True, 2)
    for group in range(300):
        found = read(made[group].as_py(), "q")
        assert found.n == np.count_nonzero(groups == group)
        assert {value // 1000 for level in found.levels for value in level} <= {group}
        assert read(whole[group].as_py(), "q").n == found.n * np.count_nonzero(numbers == group)


def changed(sketch: bytes, at: int, *new: int) -> bytes:
    return sketch[:at] + bytes(new) + sketch[at + len(new) :]


TWO = one([4, 9])
MANY = one(list(range(1000)), 8)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"", "its bytes end too soon"),
        (EMPTY[:7], "its bytes end too soon"),
        (EMPTY + b"\0", "there are bytes after its end"),
        (one([1])[:15], "its bytes end too soon"),
        (one([1]) + b"\0", "there are bytes after its end"),
        (TWO[:12], "its bytes end too soon"),
        (TWO[:30], "its bytes end too soon"),
        (TWO[:-1], "its bytes end too soon"),
        (TWO + TWO, "there are bytes after its end"),
        (changed(TWO, 2, 7), "it isn't of the KLL family"),
        (changed(TWO, 0, 6), "its form isn't one of the compact ones"),
        (changed(TWO, 1, 3), "its form isn't one of the compact ones"),
        (changed(TWO, 4, 0, 0), "its k and m can't be"),
        (changed(TWO, 6, 3), "its k and m can't be"),
        (changed(TWO, 16, 0, 0), "its k and m can't be"),
        (changed(TWO, 3, 1), "its flags aren't those of its form"),
        (changed(EMPTY, 3, 0), "its flags aren't those of its form"),
        (changed(TWO, 18, 0), "its levels can't be"),
        (changed(MANY, 18, 62), "its levels can't be"),
        (changed(TWO, 18, 61), "its bytes end too soon"),
        (changed(TWO, 20, 255, 255, 255, 255), "its levels can't be"),
        (changed(MANY, 24, 0, 0, 0, 0), "its levels can't be"),
        (changed(TWO, 8, 3), "its levels don't hold as many values as it counts"),
        (changed(TWO, 15, 255), "its levels don't hold as many values as it counts"),
        (changed(TWO, 24, 10), "its minimum is above its maximum"),
    ],
)
def test_what_is_no_sketch_has_a_name(bad: bytes, why: str) -> None:
    column = pa.array([TWO, None, bad], pa.binary())
    with pytest.raises(ValueError, match=rf"^row 2: not a KLL sketch that can be read: {why}$"):
        merged(column, np.array([0, 0, 0]), 1, 200, True, 1)
    with pytest.raises(ValueError, match=rf"^row 2: .*{why}$"):
        quantiles(column, [0.5], True)


def test_more_values_than_can_be_counted_are_refused() -> None:
    """61 levels, of which the highest has 7 values."""
    levels = b"".join(struct.pack("<i", room(8, 61) - 7) for _ in range(61))
    most = struct.pack("<BBBBHBBqHBB", 5, 1, 15, 0, 8, 8, 0, 7 << 60, 8, 61, 0) + levels + struct.pack("<9q", *[0] * 9)
    assert read(most, "q").n == 7 << 60
    found = read(together([most, TWO], 8), "q")
    assert (found.n, found.low, found.high) == ((7 << 60) + 2, 0, 9)
    with pytest.raises(ValueError, match=r"row 2: with this sketch its group has more than 2\^63 - 1 values"):
        together([TWO, most, most])


@given(
    sketch=st.sampled_from([one([7]), TWO, MANY, one(list(range(300)))]),
    flips=st.lists(st.tuples(st.integers(0, 80), st.integers(0, 255)), max_size=4),
    length=st.none() | st.integers(0, 200),
    whole=st.booleans(),
)
def test_any_bytes_are_a_sketch_or_an_error(
    sketch: bytes, flips: list[tuple[int, int]], length: int | None, whole: bool
) -> None:
    """Nothing beyond them is read: what is around them makes no difference."""
    content = bytearray(sketch[:length])
    for at, new in flips:
        content[at % max(len(content), 1) : at % max(len(content), 1) + 1] = bytes([new])
    outcomes: list[object] = []
    for around in (b"\0" * 3000, b"\xa7" * 3000):
        alone = pa.array([around, bytes(content), around], pa.binary()).slice(1, 1)
        try:
            outcomes.append(
                (
                    merged(alone, np.zeros(1, np.int64), 1, 8, whole, 1).to_pylist(),
                    [
                        struct.pack("<q" if whole else "<d", each[0].as_py() or 0)
                        for each in quantiles(alone, RANKS, whole)
                    ],
                )
            )
        except ValueError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def test_arguments_that_can_not_be() -> None:
    values, groups = pa.array([1, 2]), np.array([0, 1])
    with pytest.raises(ValueError, match="groups from 0 to 1, where there are 1"):
        sketches(values, groups, 1, 200, 1)
    with pytest.raises(ValueError, match="groups from -1 to 0, where there are 2"):
        merged(pa.array([TWO, TWO]), np.array([0, -1]), 2, 200, True, 1)
    with pytest.raises(ValueError, match=r"2 rows have groups of shape \(1,\)"):
        sketches(values, groups[:1], 2, 200, 1)
    for k in (7, 65536):
        with pytest.raises(ValueError, match=f"k={k}: k is a whole number from 8 to 65535"):
            sketches(values, groups, 2, k, 1)
        with pytest.raises(ValueError, match=f"k={k}"):
            merged(pa.array([TWO, TWO]), groups, 2, k, True, 1)
    with pytest.raises(TypeError, match="sketches of int32: they are made of int64 and float64"):
        sketches(pa.array([1, 2], pa.int32()), groups, 2, 200, 1)
    for rank in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="ranks are numbers from 0 to 1"):
            quantiles(pa.array([TWO]), [0.5, rank], True)


def test_the_largest_k() -> None:
    values = np.random.default_rng(3).integers(0, 10**9, 200_000)
    sketch = together([one(values, 65535), one(values, 8)], 65535)
    found = read(sketch, "q")
    assert (found.k, found.min_k, found.n) == (65535, 8, 400_000)


LOADED: Final = """
import numpy as np
import pyarrow as pa
from kohort.spark.formats import base64_columns, kll_kernels
from kohort.spark.jobs.kll_sketches import load, merged, quantiles, sketches

def compiled():
    named = {**vars(base64_columns), **vars(kll_kernels)}
    return {name: len(each.signatures) for name, each in named.items() if hasattr(each, "signatures")}

load()
before = compiled()
groups = np.array([1, 0, 1])
for values in (pa.array([1, None, 3]), pa.array([1.5, float("nan"), 2]), pa.array([1, 2, 3])[0:3]):
    made = merged(sketches(values, groups, 2, 200, 1), np.zeros(2, np.int64), 2, 200, pa.types.is_int64(values.type), 1)
    texts = base64_columns.base64_texts(pa.concat_arrays([made, pa.nulls(1, pa.binary())]))
    quantiles(base64_columns.unbase64(texts), [0.5, 1.0], pa.types.is_int64(values.type))
assert compiled() == before, (before, compiled())
assert before["_encode"] and before["_decode"] and before["merge"]
"""


def test_nothing_is_compiled_once_all_is_loaded() -> None:
    """Several workers would compile the same at once, while records wait."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
