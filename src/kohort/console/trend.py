"""Where a lag is going, and when it will be gone."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from kohort.console.history import Sample

LEAST_SAMPLES: Final = 4
"""Fewer say nothing."""

MOST_SAMPLES: Final = 60
"""The last ones count: two minutes of looks, so that who commits every half a minute has done so four times."""

_LEAST_PART: Final = 0.01
"""A lag that has changed by less of itself over all samples is steady."""

_LEAST_SPREADS: Final = 2
"""So is one that has changed by less than so many times what half of its samples lie off the line at most."""


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
    """Works out a trend from the last of these samples, which are in the order of their times, which all differ.

    The pace is the median of those between any two samples that lie at least half of all apart (Theil and Sen's
    estimate, of such pairs alone). One sample that is off doesn't turn it, and neither does a lag that swings like a
    sawtooth, since its consumer commits now and then: two samples of one tooth tell how quickly the tooth rises, but
    those of different teeth where the lag is going. That holds for teeth that are as long as a third of the samples.

    For n samples, at most `MOST_SAMPLES`, it compares n²/8 pairs, and sorts them: n² log n.
    """
    samples = samples[-MOST_SAMPLES:]
    if len(samples) < LEAST_SAMPLES:
        caught_up = samples and samples[-1].value == 0
        return Trend(Direction.CAUGHT_UP if caught_up else Direction.UNKNOWN)
    half = len(samples) // 2
    pace = median(
        (later.value - earlier.value) / (later.at - earlier.at)
        for at, earlier in enumerate(samples[:-half])
        for later in samples[at + half :]
    )
    newest = samples[-1]
    if newest.value <= 0:
        return Trend(Direction.CAUGHT_UP, pace)
    brought_here = [each.value + pace * (newest.at - each.at) for each in samples]
    level = median(brought_here)
    spread = median(abs(each - level) for each in brought_here)
    left = min(level, newest.value) if level > 0 else newest.value
    change = pace * (newest.at - samples[0].at)
    if abs(change) < max(1.0, _LEAST_PART * left, _LEAST_SPREADS * spread):
        return Trend(Direction.STEADY, pace)
    if change > 0:
        return Trend(Direction.RISING, pace)
    return Trend(Direction.FALLING, pace, left / -pace)
