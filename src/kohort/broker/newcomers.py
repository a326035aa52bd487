"""Connections that haven't said yet who they are: not for long, and not so many that others find no room.

Clients take milliseconds for it. So where there are too many, the oldest of the address with most of them goes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

__all__ = ["PATIENCE_SECONDS", "SECONDS", "Newcomer", "Newcomers"]

SECONDS: Final = 30.0
"""How long a client may take to authenticate."""

PATIENCE_SECONDS: Final = 2.0
"""How long it may take in any case, however many there are: after a restart all come at once."""


class Newcomer:
    """One connection.

    Args:
        close: called with the reason if it has to go.
    """

    __slots__ = ("began", "close", "host")

    def __init__(self, host: str, close: Callable[[str], object], began: float) -> None:
        self.host = host
        self.close = close
        self.began = began


class Newcomers:
    """Those there are, the oldest first.

    Args:
        most: at a time, unless all are very new.
        clock: in seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._all: dict[Newcomer, None] = {}
        self._by_host: dict[str, dict[Newcomer, None]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def enter(self, host: str, close: Callable[[str], object]) -> Newcomer:
        """Takes one in; O(addresses) where there are too many, else O(1)."""
        if len(self._all) >= self._most:
            self.make_room()
        newcomer = Newcomer(host, close, self._clock())
        self._all[newcomer] = None
        self._by_host.setdefault(host, {})[newcomer] = None
        return newcomer

    def leave(self, newcomer: Newcomer) -> None:
        """Called when it is known who it is, or it is gone; more than once does no harm."""
        if newcomer not in self._all:
            return
        del self._all[newcomer]
        same = self._by_host[newcomer.host]
        del same[newcomer]
        if not same:
            del self._by_host[newcomer.host]

    def make_room(self) -> None:
        """Closes one, unless all are very new."""
        if not self._all:
            return
        crowd: dict[Newcomer, None] = max(self._by_host.values(), key=len)
        oldest = next(iter(crowd))
        if self._clock() - oldest.began >= PATIENCE_SECONDS:
            self._close(oldest, f"{len(self._all)} connections haven't said who they are, most from its address")

    def close_late(self) -> None:
        """Closes those that take too long."""
        before = self._clock() - SECONDS
        while self._all and (oldest := next(iter(self._all))).began <= before:
            self._close(oldest, f"it hasn't said who it is for {SECONDS:.0f} s")

    def _close(self, newcomer: Newcomer, reason: str) -> None:
        self.leave(newcomer)
        newcomer.close(reason)
