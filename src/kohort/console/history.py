"""A number's history, in bounded memory."""

from __future__ import annotations

from array import array
from typing import Final, NamedTuple

RECENT: Final = 30
"""Samples that are kept as they came, unless told otherwise."""

LONG: Final = 120
"""Samples of the whole time."""

_MOST: Final = 2**63 - 1
"""What is summed up of partitions may be more, by what a broker says."""


class Sample(NamedTuple):
    """A value at a time.

    Attributes:
        at: in seconds, by a clock that never goes back.
        value: what was measured.
    """

    at: float
    value: int


class History:
    """The last samples, and those of the whole time, which lie further apart the longer that is.

    Args:
        recent, most: how many of each are kept, at least 2 and 4.

    When `most` are there, every second one is dropped, and from then on those that are kept lie twice as far apart. The
    first and the newest sample are always among them.
    """

    __slots__ = ("_apart", "_last", "_long_at", "_long_values", "_most", "_recent", "_recent_at", "_recent_values")

    def __init__(self, recent: int = RECENT, most: int = LONG) -> None:
        self._recent = max(2, recent)
        self._most = max(4, most)
        self._apart = 0.0
        self._last = float("-inf")
        self._recent_at, self._recent_values = array("d"), array("q")
        self._long_at, self._long_values = array("d"), array("q")

    def add(self, at: float, value: int) -> None:
        """Takes a sample; one that isn't newer than the last is passed over."""
        if at <= self._last:
            return
        self._last = at
        value = min(value, _MOST)
        self._recent_at.append(at)
        self._recent_values.append(value)
        if len(self._recent_at) > self._recent:
            del self._recent_at[0], self._recent_values[0]
        if len(self._long_at) > 1 and self._long_at[-1] - self._long_at[-2] < self._apart:
            self._long_at[-1], self._long_values[-1] = at, value  # the newest, until it is far enough from the others
        else:
            self._long_at.append(at)
            self._long_values.append(value)
        if len(self._long_at) > self._most:
            self._thin()

    def _thin(self) -> None:
        """Drops every second sample, but neither the first nor the newest."""
        self._apart = 2 * (self._long_at[-1] - self._long_at[0]) / len(self._long_at)
        newest = self._long_at[-1:], self._long_values[-1:]
        self._long_at, self._long_values = self._long_at[:-1:2], self._long_values[:-1:2]
        self._long_at += newest[0]
        self._long_values += newest[1]

    @property
    def recent(self) -> list[Sample]:
        """The last samples, as they came."""
        return list(map(Sample, self._recent_at, self._recent_values))

    @property
    def samples(self) -> list[Sample]:
        """Samples of the whole time, from the first to the newest."""
        return list(map(Sample, self._long_at, self._long_values))

    @property
    def merged(self) -> list[Sample]:
        """Both: the samples of the whole time, and between the newest of them all that came last."""
        return sorted({*self.samples, *self.recent})
