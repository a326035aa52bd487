"""Which lines about clients are written, so that nobody fills a disk with them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final

__all__ = ["WINDOW_SECONDS", "FewLines"]

WINDOW_SECONDS: Final = 10.0


class FewLines:
    """In each window of time the first line of its kind is written, some of each address, and some in all.

    Args:
        of_each: lines of one address in a window.
        in_all: lines of all addresses; what is kept here is bounded by it, too.
        clock: in seconds.
    """

    def __init__(self, of_each: int, in_all: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._of_each = of_each
        self._in_all = in_all
        self._clock = clock
        self._ends = 0.0
        self._told: set[Hashable] = set()
        self._by_address: Counter[str] = Counter()
        self._untold = 0

    def take(self, address: str, kind: Hashable) -> int | None:
        """Whether a line is written: None if it isn't, else how many weren't since the last one.

        Args:
            kind: the same for lines that say the same.
        """
        now = self._clock()
        if now >= self._ends:
            self._ends = now + WINDOW_SECONDS
            self._told.clear()
            self._by_address.clear()
        if kind in self._told or len(self._told) >= self._in_all or self._by_address[address] >= self._of_each:
            self._untold += 1
            return None
        self._told.add(kind)
        self._by_address[address] += 1
        untold, self._untold = self._untold, 0
        return untold
