"""The segments of a log, in order."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from kohort.log.damage import Report
from kohort.log.segment import Segment

_CACHED_SEGMENTS: Final = 8
"""Sealed segments that keep their descriptor and indexes open, as they were read recently."""


class Segments:
    """Segments by base offset; the last one is `active`, and appended to. `report` hears of wrong indexes."""

    __slots__ = ("_all", "_bases", "_recently_used", "_report", "active", "sealed_size")

    def __init__(self, segments: list[Segment], report: Report) -> None:
        self._all = segments
        self._report = report
        for segment in segments:
            segment.report = report
        self._bases = [segment.base_offset for segment in segments]
        self._recently_used: OrderedDict[int, Segment] = OrderedDict()
        self.active = segments[-1]
        self.sealed_size = sum(segment.size for segment in segments[:-1])

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, number: int) -> Segment:
        return self._all[number]

    @property
    def size(self) -> int:
        """Bytes of all segments' batches."""
        return self.sealed_size + self.active.size

    def end_of(self, number: int, log_end: int) -> int:
        return self._bases[number + 1] if number + 1 < len(self._bases) else log_end

    def number_of(self, offset: int) -> int:
        """The number of the segment with an offset, 0 for an offset before the first."""
        return max(bisect_right(self._bases, offset) - 1, 0)

    def mark_used(self, segment: Segment) -> None:
        """Keeps a segment that is read open, and closes the one that was read longest ago."""
        if segment is not self.active:
            self._recently_used[segment.base_offset] = segment
            self._recently_used.move_to_end(segment.base_offset)
            if len(self._recently_used) > _CACHED_SEGMENTS:
                self._recently_used.popitem(last=False)[1].release()

    def add(self, segment: Segment) -> None:
        """Adds the new active segment."""
        segment.report = self._report
        sealed, self.active = self.active, segment
        self.sealed_size += sealed.size
        self._all.append(segment)
        self._bases.append(segment.base_offset)
        self.mark_used(sealed)

    def replace(self, first: int, last: int, segments: list[Segment]) -> list[Segment]:
        """Replaces the segments numbered from `first` up to `last` by `segments`, and returns them."""
        for segment in segments:
            segment.report = self._report
        old = self._all[first:last]
        for segment in old:
            self._recently_used.pop(segment.base_offset, None)
        self._all[first:last] = segments
        self._bases[first:last] = [segment.base_offset for segment in segments]
        self.active = self._all[-1]
        self.sealed_size = sum(segment.size for segment in self._all[:-1])
        return old
