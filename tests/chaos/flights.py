"""Records for the application, and what must come of them.

They are as untidy as real ones: times are milliseconds since 1970; some flights are reported long after they left, some
too late to count; some records have no key, some no value.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from .scenarios import Delivered

__all__ = ["AIRLINES", "GRACE_MS", "HOUR_MS", "Airline", "Flight", "FlightRecord", "Result", "batch_result", "made_up"]

AIRLINES = {
    code: f"Airline {code}" for code in ("9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "UA", "US")
}
_AIRPORTS = ("EWR", "JFK", "LGA")
HOUR_MS = 3_600_000
GRACE_MS = 12 * HOUR_MS
_BEGIN_MS = 1_356_998_400_000  # 2013
_AN_HOUR = 100
"""Flights in an hour: so few that no group gets more than 200. Up to there quantiles are exact, and can be compared."""


class Flight(NamedTuple):
    """A flight, as far as it matters here; a cancelled one has no delay. Times are in ms since 1970."""

    carrier: str
    origin: str
    dep_delay: int | None
    departed: int


class FlightRecord(NamedTuple):
    """What is written to the topic."""

    key: str | None
    flight: Flight | None

    @property
    def topic(self) -> str:
        """Of flights."""
        return "flights"

    @property
    def value(self) -> bytes | None:
        """As it is written."""
        return None if self.flight is None else msgspec.json.encode(self.flight._asdict())


class Airline(NamedTuple):
    """A record of the table."""

    key: str

    @property
    def topic(self) -> str:
        """Of airlines."""
        return "airlines"

    @property
    def value(self) -> bytes:
        """As it is written."""
        return msgspec.json.encode({"carrier": self.key, "name": AIRLINES[self.key]})


class Result(NamedTuple):
    """What an application makes of records.

    Attributes:
        groups: by airport and the hour's beginning (ms since 1970).
        late: how many flights came too late for their hour.
        keyless: how many flights that weren't cancelled had no key.
        empty: how many records had no value.
    """

    groups: dict[tuple[str, int], dict[str, Any]]
    late: int
    keyless: int
    empty: int


def made_up(seed: int, number: int, already: int = 0) -> list[FlightRecord]:
    """Records of the flights that follow upon `already` others, `_AN_HOUR` of them in an hour; late ones among them."""
    draw = random.Random(seed)
    records = []
    for at in range(already, already + number):
        clock = _BEGIN_MS + HOUR_MS * at // _AN_HOUR
        reported_after = draw.choices((3, 14, 72), (90, 8, 2))[0] * HOUR_MS
        delay = None if draw.random() < 0.03 else int(draw.expovariate(1 / 20)) - 10
        carrier = draw.choice(tuple(AIRLINES)) if draw.random() < 0.98 else "??"  # nobody's: the join drops it
        flight = Flight(carrier, draw.choice(_AIRPORTS), delay, clock - draw.randrange(reported_after))
        chance = draw.random()
        records.append(FlightRecord(None if chance < 0.01 else carrier, None if 0.005 < chance < 0.02 else flight))
    return records


def batch_result(delivered: Iterable[Delivered]) -> Result:
    """The aggregate by airport and hour, computed over all records at once, without anything of ours.

    A flight is late when its partition has had one that left `GRACE_MS` after the end of its hour, or later.
    """
    delays: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    newest: dict[int, int] = {}
    late = keyless = empty = 0
    for partition, _, record in sorted(delivered, key=lambda each: each[:2]):
        assert isinstance(record, FlightRecord)
        key, flight = record
        if flight is None:
            empty += 1
            continue
        if key is None:
            keyless += flight.dep_delay is not None
            continue
        newest[partition] = max(newest.get(partition, 0), flight.departed)
        if flight.dep_delay is not None and flight.carrier in AIRLINES:
            hour = flight.departed - flight.departed % HOUR_MS
            if hour + HOUR_MS + GRACE_MS <= newest[partition]:
                late += 1
            else:
                delays[flight.origin, hour].append(flight.dep_delay)
    return Result({group: _summary(some) for group, some in delays.items()}, late, keyless, empty)


def _summary(delays: Sequence[int]) -> dict[str, Any]:
    return {
        "n": len(delays),
        "total": sum(delays),
        "mean": sum(delays) / len(delays),
        "p90": int(np.quantile(delays, 0.9, method="inverted_cdf")),
        "worst": max(delays),
    }
