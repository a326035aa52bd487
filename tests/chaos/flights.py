"""Flights for the application, and what must come of them."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

__all__ = ["AIRLINES", "Flight", "batch_result", "made_up"]

AIRLINES = {
    code: f"Airline {code}" for code in ("9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "UA", "US")
}
_AIRPORTS = ("EWR", "JFK", "LGA")


class Flight(NamedTuple):
    """A flight, as far as it matters here; a cancelled one has no delay."""

    carrier: str
    origin: str
    dep_delay: int | None
    time_hour: str

    def value(self) -> bytes:
        """The record's value."""
        return msgspec.json.encode(self._asdict())


def made_up(seed: int, number: int, hours: int = 700) -> list[Flight]:
    """Flights of some hours in 2013, in no order of time.

    So many hours that no group gets more than 200 flights: up to there quantiles are exact, and can be compared.
    """
    draw = random.Random(seed)
    flights = []
    for _ in range(number):
        day, hour = divmod(draw.randrange(hours), 24)
        delay = None if draw.random() < 0.03 else int(draw.expovariate(1 / 20)) - 10
        carrier = draw.choice(tuple(AIRLINES)) if draw.random() < 0.98 else "??"  # nobody's: the join drops it
        flights.append(Flight(carrier, draw.choice(_AIRPORTS), delay, f"2013-01-{day + 1:02}T{hour:02}:00:00Z"))
    return flights


def batch_result(flights: Iterable[Flight]) -> dict[tuple[str, str], dict[str, Any]]:
    """The aggregate by airport and hour, computed over all flights at once, without anything of ours."""
    delays: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for flight in flights:
        if flight.dep_delay is not None and flight.carrier in AIRLINES:
            delays[flight.origin, flight.time_hour].append(flight.dep_delay)
    return {group: _summary(some) for group, some in delays.items()}


def _summary(delays: Sequence[int]) -> dict[str, Any]:
    return {
        "n": len(delays),
        "total": sum(delays),
        "mean": sum(delays) / len(delays),
        "p90": int(np.quantile(delays, 0.9, method="inverted_cdf")),
        "worst": max(delays),
    }
