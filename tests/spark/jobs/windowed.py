"""Windows with a grace, record by record: what the pipeline has to come to, whatever its epochs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from hypothesis import strategies as st

MINUTE = 60_000


def stream_times(times: Iterable[int | None], before: int | None = None) -> list[int | None]:
    """The greatest time so far at each record, its own included."""
    found = []
    for time in times:
        if time is not None and (before is None or time > before):
            before = time
        found.append(before)
    return found


def windows_at(time: int, size: int, slide: int) -> list[int]:
    """The starts of the windows that a time is in."""
    return list(range(time - time % slide, time - size, -slide))


def counted(
    records: Sequence[tuple[str, int]], size: int, slide: int, grace: int
) -> tuple[Counter[tuple[str, int]], int]:
    """Of the records (key, time) of one partition: how many each key's window has, and how many came late."""
    counts: Counter[tuple[str, int]] = Counter()
    late = 0
    for (key, time), now in zip(records, stream_times(time for _, time in records), strict=True):
        assert now is not None
        for start in windows_at(time, size, slide):
            if start + size + grace <= now:
                late += 1
            else:
                counts[key, start] += 1
    return counts, late


def cuts(length: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Ways to divide so many records into epochs: from, up to."""
    return st.sets(st.integers(1, max(length - 1, 1))).map(lambda at: _pieces(sorted(at), length))


def _pieces(at: Sequence[int], length: int) -> list[tuple[int, int]]:
    bounds = [0, *(each for each in at if each < length), length]
    return list(pairwise(bounds))
