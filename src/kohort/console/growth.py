"""How a topic grows: records a second, and bytes on disks, from what was measured while the console runs."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kohort.console.chart import Chart, chart
from kohort.console.history import History, Sample
from kohort.console.live import View
from kohort.console.trend import LEAST_SAMPLES, trend
from kohort.console.words import NOTHING, number, pace, size

MOST_TOPICS: Final = 5_000
"""Topics whose growth is kept, 6 KB each at most; beyond, only one that somebody sees takes the place of another."""


@dataclass(slots=True)
class Growth:
    """A topic's growth.

    Attributes:
        ends: the sum of its partitions' ends; those that couldn't be asked count as they were.
        sizes: bytes of its partitions, each where it is largest.
        firsts: the sum of its partitions' first offsets, when its page was last loaded; None if they weren't told.
    """

    ends: History = field(default_factory=History)
    sizes: History = field(default_factory=History)
    firsts: int | None = None

    @property
    def per_second(self) -> float | None:
        """Records a second of late; None while too little is known."""
        recent = self.ends.recent
        return None if len(recent) < LEAST_SAMPLES else max(0.0, trend(recent).per_second or 0.0)


class GrowthBook:
    """All topics by name, with their growth.

    Args:
        most: topics that are kept.
    """

    def __init__(self, most: int = MOST_TOPICS) -> None:
        self._most = most
        self._growth: dict[str, Growth] = {}  # in the order in which the topics were looked at last
        self._turns: dict[str, None] = {}  # all topics, in that order: also those of which nothing was told, or is kept

    def of(self, topic: str) -> Growth:
        """A topic's growth; an empty one if nothing is known."""
        return self._growth.get(topic) or Growth()

    def due(self, topics: Mapping[str, int], wanted: Collection[str], most: int) -> list[str]:
        """The topics to look at next: those that are wanted, and with them those that were looked at longest ago.

        Args:
            topics: all there are, with the number of partitions of each.
            wanted: those that somebody sees.
            most: partitions in all, unless those that are wanted have more.
        """
        found = [name for name in dict.fromkeys(wanted) if name in topics]
        left = most - sum(topics[name] for name in found)
        seen = set(found)
        order = [name for name in topics if name not in self._turns]
        order += [name for name in self._turns if name in topics]
        for name in order:
            if name in seen:
                continue
            left -= topics[name]
            if left < 0 and found:
                break
            found.append(name)
        return found

    def looked(
        self,
        at: float,
        ends: Mapping[str, int],
        sizes: Mapping[str, int] | None,
        topics: Collection[str],
        *,
        due: Collection[str],
        wanted: Collection[str] = (),
    ) -> None:
        """Takes in a look.

        Args:
            at: when, in seconds by a clock that never goes back.
            ends: what was found, by topic.
            sizes: bytes of all topics; None if they weren't asked for this time, or aren't told.
            topics: all there are; what is known of others is forgotten.
            due: those that were looked at, whether or not their ends were told.
            wanted: those that somebody sees, whose growth is kept first.
        """
        for name in due:
            self._turns.pop(name, None)
            self._turns[name] = None
        for gone in [name for name in self._turns if name not in topics]:
            del self._turns[gone]
        for gone in [name for name in self._growth if name not in topics]:
            del self._growth[gone]
        for name, end in ends.items():
            if name not in topics or (
                name not in self._growth and name not in wanted and len(self._growth) >= self._most
            ):  # each would lose its growth before its next turn
                continue
            growth = self._growth.pop(name, None) or Growth()
            growth.ends.add(at, end)
            self._growth[name] = growth
        if sizes is not None:
            for name, growth in self._growth.items():
                if name in sizes:
                    growth.sizes.add(at, sizes[name])
        while len(self._growth) > self._most:
            del self._growth[next(iter(self._growth))]


def rates(samples: Sequence[Sample]) -> list[Sample]:
    """Records a second between samples, each at the later one's time; where a topic was made anew, none."""
    return [
        Sample(later.at, max(0, round((later.value - earlier.value) / (later.at - earlier.at))))
        for earlier, later in itertools.pairwise(samples)
    ]


def growth_view(growth: Growth) -> View:
    """What of a topic's page changes."""
    lines = _chart(rates(growth.ends.samples), "records/s")
    disk = _chart(growth.sizes.samples, "bytes")
    sizes = growth.sizes.recent
    counted = {}
    if growth.firsts is not None and growth.ends.recent:
        counted["offsets"] = number(max(0, growth.ends.recent[-1].value - growth.firsts))
    return View(
        {
            **counted,
            "rate": NOTHING if growth.per_second is None else pace(growth.per_second),
            "ends": number(growth.ends.recent[-1].value) if growth.ends.recent else NOTHING,
            "size": size(sizes[-1].value) if sizes else "not told",
            "size_pace": _size_pace(sizes),
            "rate_points": lines.points,
            "rate_text": lines.text,
            "size_points": disk.points,
            "size_text": disk.text,
        }
    )


def _chart(samples: Sequence[Sample], unit: str) -> Chart:
    show = size if unit == "bytes" else number
    return chart(
        samples, what="" if unit == "bytes" else unit, show=show, beginning="It is measured while the console runs."
    )


def _size_pace(samples: Sequence[Sample]) -> str:
    if len(samples) < LEAST_SAMPLES:
        return NOTHING
    per_second = trend(samples).per_second or 0.0
    if abs(per_second) < 1 / 60:
        return "steady"
    by = f"{size(round(abs(per_second)))}/s" if abs(per_second) >= 1 else f"{size(round(abs(per_second) * 60))}/min"
    return f"{'grows' if per_second > 0 else 'shrinks'} by {by}"


def sum_by_topic(values: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The sums of partitions' values, by topic."""
    found: dict[str, int] = {}
    for topic, value in values:
        found[topic] = found.get(topic, 0) + value
    return found
