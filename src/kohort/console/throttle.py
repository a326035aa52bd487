"""Slows down who guesses passwords: after some failures, each next attempt from there has to wait for longer."""

from __future__ import annotations

import ipaddress
from collections import Counter
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

MOST_NAMES: Final = 20
"""Names that are remembered of an address; attempts by others are added up."""

_Names = Counter[str | None]


class Throttle:
    """Attempts by address and name. Each counts as failed from its begin, so that many at once gain nothing.

    All attempts of an address are added up. One that succeeds forgets those by its own name alone: who has an account
    doesn't begin anew with it at guessing another's.

    Args:
        clock: seconds, which only go on.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tried: dict[str, tuple[_Names, float]] = {}

    def begin(self, address: str, name: str = "") -> float:
        """Counts an attempt and returns 0.0; or returns for how many seconds there may be none, and counts nothing."""
        key, now = _network(address), self._clock()
        names, last = self._tried.pop(key, (_Names(), now))
        if now - last > FORGOTTEN_S:
            names.clear()
        wait = last + _pause(names.total()) - now
        if wait > 0:
            self._tried[key] = names, last
            return wait
        while len(self._tried) >= MOST:
            del self._tried[next(iter(self._tried))]
        names[name if name in names or len(names) < MOST_NAMES else None] += 1
        self._tried[key] = names, now
        return 0.0

    def succeeded(self, address: str, name: str = "") -> None:
        """Forgets the attempts from there by this name."""
        names, _ = self._tried.get(_network(address), (_Names(), 0.0))
        if names.pop(name, 0) == 0 and names[None] > 0:
            names[None] -= 1


def _pause(count: int) -> float:
    return 0.0 if count < FREE else min(LONGEST_S, 2.0 ** min(count - FREE, 10))


def _network(address: str) -> str:
    """An address; of version 6 its network, in which one machine may have any number."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(found) if found.version == 4 else str(ipaddress.ip_network((found, 64), strict=False))
