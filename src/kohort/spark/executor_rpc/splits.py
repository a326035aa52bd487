"""Who reads what: an epoch's ranges, dealt to splits."""

from __future__ import annotations

from collections.abc import Sequence

from kohort.spark.jobs.epoch import OffsetRange


def ranges_of_split(
    ranges: Sequence[OffsetRange], split: int, splits: int, *, whole: bool = False
) -> list[OffsetRange]:
    """The ranges of split `split` of `splits`: about as many offsets each, the same at every call.

    All splits together have every offset once, and each has its own in order. With `whole`, no partition is divided.
    """
    ranges = [each for each in ranges if each.length]
    if whole:
        return _whole(ranges, split, splits)
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


def _whole(ranges: Sequence[OffsetRange], split: int, splits: int) -> list[OffsetRange]:
    """The longest first, each to the split that has least; ranges of one partition number stay together."""
    lengths: dict[int, int] = {}
    for each in ranges:
        lengths[each.partition] = lengths.get(each.partition, 0) + each.length
    loads = [0] * splits
    mine = set()
    for partition in sorted(lengths, key=lambda number: (-lengths[number], number)):
        least = loads.index(min(loads))
        loads[least] += lengths[partition]
        if least == split:
            mine.add(partition)
    return [each for each in ranges if each.partition in mine]
