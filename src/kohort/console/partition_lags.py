"""The lag of a group's partitions over the last minutes, in bounded memory: of those that lag most."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from heapq import nlargest
from typing import Final, NamedTuple

from kohort.client.types import TopicPartition

MOST_GROUPS: Final = 200
"""Groups whose partitions are followed: those that were looked at last."""

MOST_PARTITIONS: Final = 50
"""Of a group, that are followed: those whose lag was the largest within their line. Each takes half a KB."""

MOST_LINES: Final = 20
"""Of these, that are drawn: an open page is told each line that changes."""

EVERY_S: Final = 20.0
"""Of so long the largest lag is kept: a still partition's line stays as it is, and isn't told again."""

POINTS: Final = 31
"""Of a line: it goes over ten minutes."""

STEP: Final = 3
HEIGHT: Final = 20
"""Of a line's picture, in its own units: from one point to the next, and in all. Template and script know them, too."""

_UNKNOWN: Final = -1
_MOST: Final = 2**63 - 1


class Line(NamedTuple):
    """A partition's lag over time.

    Attributes:
        points: x,y pairs of an SVG's polyline, of which the newest is at the right end.
        grown: by how many records it has grown since the first of them.
        seconds: from that one to the newest.
    """

    points: str
    grown: int
    seconds: float


class PartitionLags:
    """Those of a group."""

    __slots__ = ("_began", "_lags", "_newest")

    def __init__(self) -> None:
        self._began: float | None = None
        self._newest = 0
        self._lags: dict[TopicPartition, array[int]] = {}

    def looked(self, at: float, lags: Mapping[TopicPartition, int]) -> None:
        """Takes a look; of p partitions it takes p log `MOST_PARTITIONS`.

        Args:
            at: in seconds, by a clock that never goes back.
            lags: of all partitions whose lag is known.
        """
        self._began = at if self._began is None else self._began
        now = int((at - self._began) // EVERY_S)
        passed = now - self._newest
        before, self._lags, self._newest = self._lags, {}, now

        def most(partition: TopicPartition) -> int:
            """By the last look alone, commits would have partitions come and go, and none would get a line."""
            return max(lags.get(partition, _UNKNOWN), *before.get(partition, (_UNKNOWN,)))

        for partition in nlargest(MOST_PARTITIONS, {**lags, **before}, key=most):
            values = before.get(partition) or array("q", [_UNKNOWN])
            if passed:
                values.extend([_UNKNOWN] * min(passed, POINTS))
                del values[:-POINTS]
            values[-1] = max(_UNKNOWN if passed else values[-1], min(lags.get(partition, _UNKNOWN), _MOST))
            if max(values) != _UNKNOWN:
                self._lags[partition] = values

    def lines(self) -> dict[TopicPartition, Line]:
        """Of the partitions that lag most, as far as there is more than one point of each."""
        known = [each for each, values in self._lags.items() if values[-1] != _UNKNOWN]
        worst = nlargest(MOST_LINES, known, key=lambda each: max(self._lags[each][-2:]))
        return {each: line for each in worst if (line := _line(self._lags[each])) is not None}


def _line(values: array[int]) -> Line | None:
    known = [(at, value) for at, value in enumerate(values, POINTS - len(values)) if value != _UNKNOWN]
    if len(known) < 2:
        return None
    most = max(1, *(value for _, value in known))
    points = " ".join(f"{STEP * at},{HEIGHT - value * HEIGHT // most}" for at, value in known)
    (begin, first), (end, last) = known[0], known[-1]
    return Line(points, last - first, (end - begin) * EVERY_S)
