"""Divides the offset ranges of an epoch among splits."""

from __future__ import annotations

from collections.abc import Sequence

from kohort.spark.epoch import OffsetRange


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


def _by_whole_partitions(ranges: Sequence[OffsetRange], split: int, splits: int) -> list[OffsetRange]:
    """Gives the longest partition first, to the split with the least. Ranges of one partition number stay together."""
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


def positions_of(ranges: Sequence[OffsetRange]) -> dict[int, int]:
    """Where each partition's task reads on: an offset, or, of several topics that are read together, their sum."""
    positions: dict[int, int] = {}
    for each in ranges:
        positions[each.partition] = positions.get(each.partition, 0) + each.start
    return positions


def ahead_of(ranges: Sequence[OffsetRange], topic: str) -> dict[int, int]:
    """What is added to a topic's offsets, by partition, so that an epoch's records have one order over all topics.

    Records of a topic come before those of the ones after it. Each number is at least `positions_of` the epoch, and
    less than that of the next one, so numbers go up from epoch to epoch, and no two records have the same.
    """
    ahead: dict[int, int] = {}
    passed: set[int] = set()
    for each in ranges:
        if each.topic == topic:
            passed.add(each.partition)
            ahead.setdefault(each.partition, 0)
        else:
            added = each.start if each.partition in passed else each.end
            ahead[each.partition] = ahead.get(each.partition, 0) + added
    return ahead
