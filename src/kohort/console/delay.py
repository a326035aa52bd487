"""A lag in time: how long ago was written what a group reads next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kohort.console.history import Sample


@dataclass(frozen=True, slots=True)
class Delay:
    """How far behind a group is.

    Attributes:
        seconds: since then.
        at_least: whether it is that long or longer, since nobody has looked for so long.
    """

    seconds: float
    at_least: bool = False


def delay(ends: Sequence[Sample], lag: int) -> Delay | None:
    """Works out how far behind a group is; None if too little is known.

    Of all its partitions together: when their ends, summed up, were what the group has read by now, evenly between two
    looks. One partition that waits behind many that don't is longer behind.

    Args:
        ends: in the order of their times, which all differ.
        lag: records that it hasn't read when the last of them was taken.
    """
    if not ends or lag <= 0:
        return Delay(0.0) if ends else None
    newest = later = ends[-1]
    read = newest.value - lag
    for earlier in reversed(ends[:-1]):
        if earlier.value > later.value:  # a topic was made anew, or partitions aren't known any more
            break
        if earlier.value <= read:
            part = (read - earlier.value) / (later.value - earlier.value)
            return Delay(newest.at - earlier.at - part * (later.at - earlier.at))
        later = earlier
    return Delay(newest.at - later.at, at_least=True) if later is not newest else None
