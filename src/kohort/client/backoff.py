"""Exponential backoff with jitter (KIP-580)."""

from __future__ import annotations

from random import Random
from typing import Final

__all__ = ["Backoff"]

_FACTOR: Final = 2
_JITTER: Final = 0.2


class Backoff:
    """The pauses between attempts, in ms: `first`, twice that, … up to `most`, each up to 20 % shorter or longer.

    Args:
        first, most: ms.
        random: for jitter; tests pass their own.
    """

    def __init__(self, first: float, most: float, random: Random | None = None) -> None:
        self._first, self._most = first, max(first, most)
        self._random = random or Random()
        self.attempts = 0

    def next(self) -> float:
        """Returns the next pause, in ms."""
        # The exponent is bounded, so that many attempts don't overflow.
        pause = min(self._most, self._first * float(_FACTOR ** min(self.attempts, 30)))
        self.attempts += 1
        return pause * self._random.uniform(1 - _JITTER, 1 + _JITTER)

    def reset(self) -> None:
        """Starts over, after a success."""
        self.attempts = 0
