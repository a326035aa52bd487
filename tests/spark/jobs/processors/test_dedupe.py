from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.spark.jobs.processors.dedupe import DedupeProcessor, DedupeWithinProcessor
from kohort.spark.program.operations import Dedupe
from kohort.spark.runtime.window_closing import Windows

from .tasks import epochs

SCHEMA = pa.schema([pa.field("id", pa.string()), pa.field("n", pa.int64())])
AT = pa.schema([pa.field("at", pa.timestamp("us", "UTC"))])
SIZES = st.lists(st.integers(0, 5), max_size=6)
ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.none() | st.integers(0, 60)), max_size=25)


def rows_of(some: list[tuple[str | None, int | None]]) -> list[dict[str, Any]]:
    return [{"id": key, "n": n, "_time": time} for n, (key, time) in enumerate(some)]


@settings(max_examples=100)
@given(ROWS, SIZES)
def test_the_first_row_of_each_key_passes(some: list[tuple[str | None, int | None]], sizes: list[int]) -> None:
    passed = [
        n
        for _, made in epochs(DedupeProcessor(), rows_of(some), SCHEMA, ["id"], pa.schema([]), sizes)
        for n in made.rows["n"].to_pylist()
    ]
    keys = [key for key, _ in some]
    assert passed == [n for n, key in enumerate(keys) if key not in keys[:n]]


def judged(some: list[tuple[str | None, int | None]], within: int) -> tuple[list[int], int]:
    """The rows that pass, and how many are late; row by row, with nothing forgotten."""
    passed: list[int] = []
    times: dict[str | None, list[int]] = {}
    late, now = 0, -1
    for n, (key, time) in enumerate(some):
        if time is None:
            continue
        now = max(now, time)
        if time <= now - within:
            late += 1
        elif all(abs(time - other) > within for other in times.setdefault(key, [])):
            times[key].append(time)
            passed.append(n)
    return passed, late


@settings(max_examples=200)
@given(ROWS, SIZES, st.integers(1, 12), st.booleans())
def test_rows_pass_again_after_the_span_whatever_is_forgotten(
    some: list[tuple[str | None, int | None]], sizes: list[int], within: int, forgets: bool
) -> None:
    spec = Dedupe(within)
    windows = Windows(spec.bucket_ms, 0, spec.retention_ms) if forgets else None
    processor = DedupeWithinProcessor(within)
    passed: list[int] = []
    late = dropped = 0
    for table, made in epochs(
        processor, rows_of(some), SCHEMA, ["id"], AT, sizes, windows=windows, bucket_ms=spec.bucket_ms
    ):
        passed += made.rows["n"].to_pylist()
        assert table.take(made.of).equals(made.rows)
        late += made.late
        dropped += sum(count for _, count in made.dropped)
    assert (passed, late) == judged(some, within)
    assert dropped == sum(time is None for _, time in some)
