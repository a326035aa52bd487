from __future__ import annotations

from itertools import accumulate
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark.jobs.processors.top import TopProcessor
from kohort.spark.program.windows import WindowSpec
from kohort.spark.runtime.window_closing import Windows

from .tasks import epochs

SCHEMA = pa.schema(
    [
        pa.field("item", pa.string()),
        pa.field("price", pa.int64()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("n", pa.int64()),
    ]
)
RANK = pa.field("rank", pa.int32())
PLACE = pa.field("place", pa.int32())
KEPT = pa.schema([RANK, *(each for each in SCHEMA if each.name != "item")])
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]), st.none() | st.integers(-3, 3), st.none() | st.integers(0, 40)
    ),
    max_size=25,
)  # fmt: skip
SIZES = st.lists(st.integers(0, 5), max_size=6)
Some = list[tuple[str | None, int | None, int | None]]
Place = tuple[int | None, str | None, int]
"""A window's start, a group, and a place in it."""
Ranks = dict[tuple[int | None, str | None, int], int]


def ranks(some: Some, sizes: list[int], top: TopProcessor, **more: Any) -> tuple[list[Ranks], int]:
    """What each epoch gives: (window, item, rank) -> row. And how often a row was late."""
    rows = [
        {"item": item, "price": price, "at": None if at is None else at * 1000, "n": n, "_time": at}
        for n, (item, price, at) in enumerate(some)
    ]
    found: list[Ranks] = []
    late = 0
    for table, made in epochs(top, rows, SCHEMA, ["item"], KEPT, sizes, map_key=pa.schema([RANK]), **more):
        late += made.late
        assert made.of.to_pylist() == sorted(made.of.to_pylist())
        assert table["item"].take(made.of).to_pylist() == made.rows["item"].to_pylist()
        given_ = {}
        for row in made.rows.to_pylist():
            item, price, _ = some[row["n"]]
            assert (row["item"], row["price"]) == (item, price)
            start = round(row["window"].timestamp() * 1000) if "window" in row else None
            given_[start, row["item"], row["rank"]] = row["n"]
        assert len(given_) == made.rows.num_rows
        found.append(given_)
    return found, late


def best(entries: list[tuple[Any, int, int]], n: int, descending: bool) -> Ranks:
    """The ranks of (group, price, row)."""
    out: Ranks = {}
    for group in {each[0] for each in entries}:
        mine = [(-price if descending else price, row) for other, price, row in entries if other == group]
        out |= {(*group, rank): row for rank, (_, row) in enumerate(sorted(mine)[:n], 1)}
    return out


@settings(max_examples=150)
@given(ROWS, SIZES, st.integers(1, 4), st.booleans())
def test_each_epoch_gives_the_ranks_that_change(some: Some, sizes: list[int], n: int, descending: bool) -> None:
    found, _ = ranks(some, sizes, TopProcessor(n, "price", descending, ("item",), None))
    table: Ranks = {}
    ends = [*accumulate(sizes), 10**6]
    epochs_ = [some[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    done = 0
    for number, each in enumerate([each for each in epochs_ if each]):
        done += len(each)
        now = best([((None, i), p, row) for row, (i, p, _) in enumerate(some[:done]) if p is not None], n, descending)
        assert found[number] == {key: row for key, row in now.items() if table.get(key) != row}
        table = now


@settings(max_examples=150)
@given(ROWS, SIZES, st.integers(1, 3), st.sampled_from([(10, 10), (10, 5), (10, 4)]), st.integers(0, 10), st.booleans())
def test_windows_have_ranks_of_their_own_and_are_forgotten(
    some: Some, sizes: list[int], n: int, lengths: tuple[int, int], grace: int, forgets: bool
) -> None:
    size, slide = lengths
    window = WindowSpec("at", size, slide, grace, None)
    windows = Windows(size, 0, size + grace) if forgets else None
    found, late = ranks(some, sizes, TopProcessor(n, "price", True, ("item",), window), windows=windows)
    entries = []
    closed, now = 0, -1
    for row, (item, price, at) in enumerate(some):
        if at is None:
            continue
        now = max(now, at)
        for start in range(-20, at + 1):
            if start % slide == 0 and start > at - size:
                if start + size + grace <= now:
                    closed += 1
                elif price is not None:
                    entries.append(((start, item), price, row))
    table: Ranks = {}
    for each in found:
        table |= each
    assert table == best(entries, n, True)
    assert late == closed


def tied(some: Some, sizes: list[int], top: TopProcessor, **more: Any) -> list[dict[Place, tuple[int, int] | None]]:
    """What each epoch gives: (window, item, place) -> rank and row, None for a place that has no row any more."""
    rows = [
        {"item": item, "price": price, "at": None if at is None else at * 1000, "n": n, "_time": at}
        for n, (item, price, at) in enumerate(some)
    ]
    kept = pa.schema([PLACE, *KEPT])
    found = []
    for table, made in epochs(top, rows, SCHEMA, ["item"], kept, sizes, map_key=pa.schema([PLACE]), **more):
        assert made.of.to_pylist() == sorted(made.of.to_pylist())
        assert table["item"].take(made.of).to_pylist() == made.rows["item"].to_pylist()
        given_: dict[Place, tuple[int, int] | None] = {}
        for row in made.rows.to_pylist():
            start = round(row["window"].timestamp() * 1000) if "window" in row else None
            gone = row["rank"] is None
            assert all(row[name] is None for name in ("price", "at", "n")) if gone else row["price"] is not None
            given_[start, row["item"], row["place"]] = None if gone else (row["rank"], row["n"])
        assert len(given_) == made.rows.num_rows
        found.append(given_)
    return found


def best_tied(entries: list[tuple[Any, int, int]], n: int, descending: bool) -> dict[Place, tuple[int, int]]:
    """The places of (group, price, row) whose rank, as of SQL, is n or less."""
    out = {}
    for group in {each[0] for each in entries}:
        mine = sorted((-price if descending else price, row) for other, price, row in entries if other == group)
        ranked = [(1 + sum(other < price for other, _ in mine), row) for price, row in mine]
        out |= {(*group, place): each for place, each in enumerate(ranked, 1) if each[0] <= n}
    return out


@settings(max_examples=200)
@given(ROWS, SIZES, st.integers(1, 4), st.booleans())
def test_all_that_tie_with_the_last_are_kept_until_enough_are_before_them(
    some: Some, sizes: list[int], n: int, descending: bool
) -> None:
    found = tied(some, sizes, TopProcessor(n, "price", descending, ("item",), None, tied=True))
    table: dict[Place, tuple[int, int]] = {}
    ends = [*accumulate(sizes), 10**6]
    epochs_ = [some[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    done = 0
    for number, each in enumerate([each for each in epochs_ if each]):
        done += len(each)
        entries = [((None, i), p, row) for row, (i, p, _) in enumerate(some[:done]) if p is not None]
        now = best_tied(entries, n, descending)
        changes: dict[Place, tuple[int, int] | None] = {key: at for key, at in now.items() if table.get(key) != at}
        assert found[number] == changes | dict.fromkeys(table.keys() - now.keys())
        table = now


@settings(max_examples=100)
@given(ROWS, SIZES, st.integers(1, 3))
def test_ties_are_of_a_window(some: Some, sizes: list[int], n: int) -> None:
    window = WindowSpec("at", 10, 5, None, None)
    table: dict[Place, tuple[int, int]] = {}
    for each in tied(some, sizes, TopProcessor(n, "price", True, ("item",), window, tied=True)):
        for place, row in each.items():
            if row is None:
                del table[place]  # nothing goes that wasn't there
            else:
                table[place] = row
    starts = [((start, item), price, row) for row, (item, price, at) in enumerate(some) if at is not None
              for start in range(at - at % 5 - 5, at + 1, 5) if price is not None]  # fmt: skip
    assert table == best_tied(starts, n, True)
