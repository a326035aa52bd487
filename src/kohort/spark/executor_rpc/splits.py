"""Divides the offset ranges of an epoch among splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kohort.spark.epoch import OffsetRange

_EVEN: Final = 1.25
"""How much more than the others' average the longest split may have."""


def ranges_of_split(
    ranges: Sequence[OffsetRange], split: int, splits: int, *, whole_partitions: bool = False
) -> list[OffsetRange]:
    """The ranges of split `split` of `splits`: about as many offsets each, the same at every call.

    Together, the splits have every offset once, each in order. With `whole_partitions`, no partition is divided.
    """
    ranges = [each for each in ranges if each.length]
    if whole_partitions:
        return _by_whole_partitions(ranges, split, splits)
    total = sum(each.length for each in ranges)
    first, last = total * split // splits, total * (split + 1) // splits
    mine = []
    position = 0
    for each in ranges:
        start = max(first - position, 0)
        end = min(last - position, each.length)
        if start < end:
            mine.append(OffsetRange(each.topic, each.partition, each.start + start, each.start + end))
        position += each.length
    return mine


def even_by_whole_partitions(ranges: Sequence[OffsetRange], splits: int) -> bool:
    """Whether splits have about as many offsets each if no partition is divided."""
    loads = [0] * splits
    for split, length in _places(ranges, splits).values():
        loads[split] += length
    return max(loads) * splits <= _EVEN * sum(loads)


def _by_whole_partitions(ranges: Sequence[OffsetRange], split: int, splits: int) -> list[OffsetRange]:
    places = _places(ranges, splits)
    return [each for each in ranges if places[each.partition][0] == split]


def _places(ranges: Sequence[OffsetRange], splits: int) -> dict[int, tuple[int, int]]:
    """The split of each partition number, and how many offsets it has: the longest first, where there is least."""
    lengths: dict[int, int] = {}
    for each in ranges:
        lengths[each.partition] = lengths.get(each.partition, 0) + each.length
    loads = [0] * splits
    places = {}
    for partition in sorted(lengths, key=lambda number: (-lengths[number], number)):
        least = loads.index(min(loads))
        loads[least] += lengths[partition]
        places[partition] = (least, lengths[partition])
    return places
