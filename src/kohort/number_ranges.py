"""Partitions and other whole numbers as people read them: in ranges."""

from __future__ import annotations

from collections.abc import Iterable


def numbers(values: Iterable[int]) -> str:
    """Whole numbers, with ranges: `0-3, 7`."""
    runs: list[list[int]] = []
    for value in sorted(values):
        if runs and value <= runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def partitions_text(partitions: Iterable[tuple[str, int]]) -> str:
    """Partitions by topic: `flights: 0-3; weather: 1`; also tasks by subtopology."""
    found: dict[str, list[int]] = {}
    for name, number in partitions:
        found.setdefault(name, []).append(number)
    return "; ".join(f"{name}: {numbers(some)}" for name, some in sorted(found.items()))
