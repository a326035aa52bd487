"""A line of a lag over time, as the points of an SVG, and in words for who doesn't see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from kohort.console.history import Sample
from kohort.console.words import duration, number

WIDTH: Final = 600
HEIGHT: Final = 120
"""Of the picture, in its own units."""

_LEAST: Final = 2


class Chart(NamedTuple):
    """A line.

    Attributes:
        points: x,y pairs of an SVG's polyline, "" while there are too few.
        text: what it shows, in a sentence.
        most: the value at the top.
    """

    points: str
    text: str
    most: str


def chart(
    samples: Sequence[Sample],
    *,
    what: str = "records",
    show: Callable[[int], str] = number,
    beginning: str = "The lag's history begins with the console, and grows while it runs.",
) -> Chart:
    """The line of samples in the order of their times, which all differ.

    Args:
        samples: what was measured.
        what: the unit, said behind a value.
        show: makes a value text.
        beginning: what is said while there are too few.
    """
    if len(samples) < _LEAST:
        return Chart("", beginning, "")
    first, last = samples[0], samples[-1]
    most = max(sample.value for sample in samples)
    over = last.at - first.at
    points = " ".join(
        f"{(sample.at - first.at) / over * WIDTH:.1f},{HEIGHT - sample.value / max(1, most) * HEIGHT:.1f}"
        for sample in samples
    )
    text = f"Within {duration(over)}: from {show(first.value)} to {show(last.value)} {what}".rstrip()
    return Chart(points, f"{text}, at most {show(most)}.", show(most))
