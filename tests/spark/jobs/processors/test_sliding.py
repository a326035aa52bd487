"""Sliding windows, epoch by epoch: beside what a window is, and beside Kafka Streams' way, row by row."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark.jobs.processors import ordering, sliding
from kohort.spark.jobs.processors.sliding import SlidingProcessor
from kohort.spark.program.internal_columns import WINDOW_START
from kohort.spark.program.sliding_windows import Slide
from kohort.spark.runtime.window_closing import Windows

from .tasks import epochs

SCHEMA = pa.schema([pa.field("item", pa.string()), pa.field("n", pa.int64())])
KEPT = pa.schema([pa.field("n", pa.int64()), pa.field("_time", pa.int64()), pa.field("_offset", pa.int64())])
ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.none() | st.integers(-5, 60)), max_size=25)
SIZES = st.lists(st.integers(0, 6), max_size=6)
Some = list[tuple[str | None, int | None]]
Found = dict[tuple[str | None, int], list[int]]
"""The rows of each window, by group and start."""


def found(some: Some, sizes: list[int], length: int, grace: int, bucket: int) -> tuple[Found, int]:
    """The rows of all windows after some epochs, and how many rows were late."""
    rows = [{"item": item, "n": n, "_time": at} for n, (item, at) in enumerate(some)]
    windows: Found = {}
    late = 0
    forgets = Windows(bucket, 0, bucket + length + grace + 2)
    processor = SlidingProcessor(Slide(length, grace), ("item",))
    for _, made in epochs(processor, rows, SCHEMA, ["item"], KEPT, sizes, forgets, bucket_ms=bucket):
        late += made.late
        assert made.times is not None and made.offsets is not None
        assert made.times.to_pylist() == [some[n][1] for n in made.rows["n"].to_pylist()]
        assert made.offsets.to_pylist() == made.rows["n"].to_pylist()
        for row in made.rows.to_pylist():
            assert row["item"] == some[row["n"]][0]
            windows.setdefault((row["item"], row[WINDOW_START]), []).append(row["n"])
    assert all(max(Counter(rows).values()) == 1 for rows in windows.values())
    return {each: sorted(rows) for each, rows in windows.items()}, late


def own_start(at: int, length: int) -> int:
    return 0 if 0 <= at < length else at - length


def by_definition(some: Some, length: int, grace: int) -> tuple[Found, int]:
    """What is in each window that there is."""
    now = -100
    taken: list[tuple[int, str | None, int, int]] = []
    late = 0
    for n, (item, at) in enumerate(some):
        if at is None:
            continue
        now = max(now, at)
        if at + 1 + length > now - grace:
            taken.append((n, item, at, now - grace))
        else:
            late += 1
    windows = {}
    for item in {each for _, each, _, _ in taken}:
        mine = [(n, at, closed) for n, other, at, closed in taken if other == item]
        for start in {own_start(at, length) for _, at, _ in mine} | {at + 1 for _, at, _ in mine}:
            inside = [
                (n, at) for n, at, closed in mine if start <= at <= start + length and start + length >= closed
            ]  # fmt: skip
            ends = any(own_start(at, length) == start for _, at in inside)
            if inside and (ends or any(at == start - 1 for _, at, _ in mine)):
                windows[item, start] = [n for n, _ in inside]
    return windows, late


def row_by_row(some: Some, length: int, grace: int) -> Found:
    """As Kafka Streams has it: a row is added to the windows around it, and makes up to three more of their rows."""
    windows: dict[tuple[str | None, int], list[tuple[int, int]]] = {}
    now = -1
    for n, (item, at) in enumerate(some):
        if at is None:
            continue
        now = max(now, at)
        if at + 1 + length <= now - grace:
            continue
        mine = {start: rows for (other, start), rows in windows.items() if other == item}
        earlier = {other for rows in mine.values() for _, other in rows}
        known = {(m, other) for rows in mine.values() for m, other in rows}
        for start, rows in mine.items():
            if start <= at <= start + length and start + length >= now - grace:
                rows.append((n, at))
        wanted = [own_start(at, length)]
        if previous := [other for other in earlier if other < at]:
            wanted.append(max(previous) + 1)
        wanted.append(at + 1)
        for start in wanted:
            inside = [(m, other) for m, other in (known | {(n, at)}) if start <= other <= start + length]
            if start not in mine and inside and start + length >= now - grace:
                windows[item, start] = inside
    return {each: sorted(n for n, _ in rows) for each, rows in windows.items()}


@settings(max_examples=300)
@given(ROWS, SIZES, st.integers(0, 12), st.integers(0, 15), st.integers(0, 5))
def test_windows_are_those_of_the_definition_however_epochs_are_cut(
    some: Some, sizes: list[int], length: int, grace: int, more: int
) -> None:
    assert found(some, sizes, length, grace, length + 1 + more) == by_definition(some, length, grace)


@settings(max_examples=300)
@given(ROWS, SIZES, st.integers(0, 12), st.integers(0, 15))
def test_windows_are_those_of_kafka_streams(some: Some, sizes: list[int], length: int, grace: int) -> None:
    """Of rows that aren't so late that the window is closed that ends with them."""
    now = -1
    in_time: Some = []
    for item, at in some:
        if at is not None and at >= 0:
            now = max(now, at)
            if at >= now - grace:
                in_time.append((item, at))
    windows, late = found(in_time, sizes, length, grace, length + 1)
    assert windows == row_by_row(in_time, length, grace)
    assert late == 0


@pytest.mark.parametrize("sizes", [[], [1, 1, 1, 1]])
def test_a_window_ends_with_each_row_and_another_begins_after_it(sizes: list[int]) -> None:
    some: Any = [("a", 100), ("a", 105), ("a", 111), ("a", 104)]
    windows, _ = found(some, sizes, 10, 50, 11)
    assert {start: rows for (_, start), rows in windows.items()} == {
        90: [0], 95: [0, 1, 3], 101: [1, 2, 3], 106: [2], 94: [0, 3], 105: [1, 2],
    }  # fmt: skip


def test_rows_that_were_kept_are_not_gone_through_for_each_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that comes later takes as much as there is to give, and not the square of the rows that are near."""
    gone_through = 0

    def counted(counts: Any) -> Any:
        nonlocal gone_through
        gone_through += int(counts.sum())
        return ordering.counted(counts)

    monkeypatch.setattr(sliding, "counted", counted)
    some: Any = [("a", at) for at in range(100)]
    windows, _ = found(some, [1] * 100, 1_000, 0, 1_001)
    assert gone_through == sum(map(len, windows.values()))
