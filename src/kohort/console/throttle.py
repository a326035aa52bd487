"""Slows down who guesses passwords: after some failures, each next attempt from there has to wait for longer."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Final

FREE: Final = 5
"""Attempts that nobody has to wait for."""

LONGEST_S: Final = 60.0
"""The longest wait."""

FORGOTTEN_S: Final = 900.0
"""Without an attempt for so long, all is forgotten."""

MOST: Final = 1_000
"""Addresses that are remembered; of more, those that tried last."""


class Throttle:
    """Attempts by address. Each counts as failed from its begin, so that many at once gain nothing.

    Args:
        clock: seconds, which only go on.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tried: dict[str, tuple[int, float]] = {}

    def begin(self, address: str) -> float:
        """Counts an attempt and returns 0.0; or returns for how many seconds there may be none, and counts nothing."""
        key, now = _network(address), self._clock()
        count, last = self._tried.pop(key, (0, now))
        if now - last > FORGOTTEN_S:
            count = 0
        wait = last + _pause(count) - now
        if wait > 0:
            self._tried[key] = count, last
            return wait
        while len(self._tried) >= MOST:
            del self._tried[next(iter(self._tried))]
        self._tried[key] = count + 1, now
        return 0.0

    def succeeded(self, address: str) -> None:
        """Forgets the attempts from there."""
        self._tried.pop(_network(address), None)


def _pause(count: int) -> float:
    return 0.0 if count < FREE else min(LONGEST_S, 2.0 ** min(count - FREE, 10))


def _network(address: str) -> str:
    """An address; of version 6 its network, in which one machine may have any number."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(found) if found.version == 4 else str(ipaddress.ip_network((found, 64), strict=False))
