"""Ranges of offsets with their delivery state, and how newer ones are combined with those there are."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Final, NamedTuple

_FIRST: Final = attrgetter("first_offset")
_LAST: Final = attrgetter("last_offset")


class StateBatch(NamedTuple):
    """A range of offsets, both ends included, in the same delivery state.

    Attributes:
        delivery_state: 0 available, 2 acknowledged, 4 archived.
        delivery_count: how often the records were delivered.
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def combine(
    current: Iterable[StateBatch], newer: Iterable[StateBatch], start_offset: int = -1
) -> tuple[StateBatch, ...]:
    """Combines batches into few that don't overlap, in the order of their offsets.

    Where batches overlap, the higher delivery count wins, and at the same count the higher state: a state only ever
    goes on, so the order in which they were written doesn't matter. Neighbours with the same state become one.
    O(n log n) in the number of batches, whatever their length.

    Args:
        start_offset: what is before it is dropped; -1 keeps all.
    """
    pending = sorted(
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in (*current, *newer)
        if batch.last_offset >= start_offset and batch.last_offset >= batch.first_offset
    )
    combined: list[StateBatch] = []
    open_batches: list[tuple[int, int, int]] = []  # those that cover `offset`, the one that wins first
    offset, index = 0, 0
    while open_batches or index < len(pending):
        if not open_batches:
            offset = pending[index].first_offset
        while index < len(pending) and pending[index].first_offset <= offset:
            batch = pending[index]
            heappush(open_batches, (-batch.delivery_count, -batch.delivery_state, batch.last_offset))
            index += 1
        count, state, last = open_batches[0]
        if last < offset:
            heappop(open_batches)
            continue
        if index < len(pending):
            last = min(last, pending[index].first_offset - 1)
        _append(combined, StateBatch(offset, last, -state, -count))
        offset = last + 1
    return tuple(combined)


def overlay(
    current: tuple[StateBatch, ...], newer: Sequence[StateBatch], start_offset: int = -1
) -> tuple[StateBatch, ...]:
    """Combines newer batches with those of an earlier result, of which it looks at what is near the newer ones only.

    So a record that is acknowledged by itself costs little, however many pieces there are: O(log n), and the copy.
    """
    begin = bisect_left(current, start_offset, key=_LAST)
    near, after = begin, begin
    if newer:
        near = bisect_left(current, min(map(_FIRST, newer)) - 1, lo=begin, key=_LAST)
        after = bisect_right(current, max(map(_LAST, newer)) + 1, lo=near, key=_FIRST)
    combined = current[begin:near] + combine(current[near:after], newer, start_offset) + current[after:]
    if combined and combined[0].first_offset < start_offset:
        return (combined[0]._replace(first_offset=start_offset), *combined[1:])
    return combined


def _append(combined: list[StateBatch], batch: StateBatch) -> None:
    if combined:
        previous = combined[-1]
        if previous.last_offset + 1 == batch.first_offset and previous[2:] == batch[2:]:
            combined[-1] = previous._replace(last_offset=batch.last_offset)
            return
    combined.append(batch)
