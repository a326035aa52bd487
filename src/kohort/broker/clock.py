"""What time it is for the broker: the system's time, or one that a test has moved ahead."""

from __future__ import annotations

import time

__all__ = ["MovableClock", "now_ms"]


def now_ms() -> int:
    """The system's time, in ms since 1970."""
    return time.time_ns() // 1_000_000


class MovableClock:
    """The system's time, and what the clock has been moved ahead. It goes on by itself, and never goes back.

    Who moves it has the broker do what became due: `Broker.catch_up`.
    """

    def __init__(self) -> None:
        self._ahead_ms = 0

    def __call__(self) -> int:
        return now_ms() + self._ahead_ms

    def advance(self, ms: int) -> None:
        """Moves it ahead.

        Raises:
            ValueError: it would go back.
        """
        if ms < 0:
            raise ValueError(f"a broker's clock doesn't go back: {ms} ms")
        self._ahead_ms += ms
