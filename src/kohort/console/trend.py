"""Where a lag is going, and when it will be gone."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Final

from kohort.console.history import Sample

LEAST_SAMPLES: Final = 4
"""Fewer say nothing."""

_LEAST_PART: Final = 0.01
"""A lag that has changed by less of itself over all samples is steady."""


class Direction(enum.StrEnum):
    """Where a lag is going, as it is shown."""

    UNKNOWN = "not known yet"
    CAUGHT_UP = "caught up"
    FALLING = "falling"
    STEADY = "steady"
    RISING = "rising"


@dataclass(frozen=True, slots=True)
class Trend:
    """Where a lag is going.

    Attributes:
        direction: in a word.
        per_second: by how many records it grows each second, negative where it falls; None if that isn't known.
        caught_up_in: seconds from the last sample until nothing is left, at this pace; None where it doesn't fall.
    """

    direction: Direction
    per_second: float | None = None
    caught_up_in: float | None = None


def trend(samples: Sequence[Sample]) -> Trend:
    """Works out a trend from samples in the order of their times, which all differ.

    The pace is the median of those between any two samples (Theil and Sen's estimate): commits come in steps, and one
    that is late, or a burst of records, doesn't turn it.
    """
    if len(samples) < LEAST_SAMPLES:
        caught_up = samples and samples[-1].value == 0
        return Trend(Direction.CAUGHT_UP if caught_up else Direction.UNKNOWN)
    pace = median(
        (later.value - earlier.value) / (later.at - earlier.at) for earlier, later in combinations(samples, 2)
    )
    left = samples[-1].value
    if left <= 0:
        return Trend(Direction.CAUGHT_UP, pace)
    change = pace * (samples[-1].at - samples[0].at)
    if abs(change) < max(1.0, _LEAST_PART * left):
        return Trend(Direction.STEADY, pace)
    if change > 0:
        return Trend(Direction.RISING, pace)
    return Trend(Direction.FALLING, pace, left / -pace)
