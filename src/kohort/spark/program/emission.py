"""When aggregates are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kohort.spark.program.windows import Duration, duration_ms

__all__ = ["AtMostEvery", "Emit", "at_most_every"]


@dataclass(frozen=True, slots=True)
class AtMostEvery:
    """A group is written when it has waited so long (ms) by stream time since it changed."""

    ms: int


Emit = Literal["update", "close"] | AtMostEvery


def at_most_every(time: Duration) -> AtMostEvery:
    """Write a group of an aggregate once in a time at most, as `emit`.

        by_origin.aggregate("delays", emit=at_most_every("10 seconds"), n=count())

    A group that changes waits for so long, and is written as it is then: changes in between don't begin the time anew.
    Time is the stream's own, so where no more rows come the last changes wait until there are some.

    Args:
        time: how long, such as "10 seconds".

    Raises:
        ProgramError: no such length can be.
    """
    return AtMostEvery(duration_ms("at_most_every", time))
