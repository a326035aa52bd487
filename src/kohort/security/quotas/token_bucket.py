"""A token bucket: bursts are taken as long as there are tokens, which come back at a rate (KIP-599).

The last that is taken may leave a debt, which has to be paid before any more is taken.
"""

from __future__ import annotations


class TokenBucket:
    """The tokens of one client.

    Args:
        rate: tokens a second.
        seconds: how long it takes to fill the bucket.
        now: in ms; it is full then.
    """

    __slots__ = ("_at", "_rate", "_seconds", "_tokens")

    def __init__(self, rate: float, seconds: float, now: int) -> None:
        self._rate = rate
        self._seconds = seconds
        self._tokens = rate * seconds
        self._at = now

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self._rate

    def change(self, rate: float, now: int) -> None:
        """Goes on with another rate; what is in the bucket or owed stays."""
        self._fill(now)
        self._rate = rate
        self._fill(now)  # which takes away what is too much

    def take(self, tokens: float, now: int) -> None:
        """Takes tokens, also if there aren't as many."""
        self._fill(now)
        self._tokens -= tokens

    def throttle_ms(self, now: int) -> int:
        """How long it takes until nothing is owed."""
        self._fill(now)
        return round(-self._tokens / self._rate * 1000) if self._tokens < 0 else 0

    def idle(self, now: int) -> bool:
        """Whether it is as one that was never used."""
        self._fill(now)
        return self._tokens >= self._rate * self._seconds

    def _fill(self, now: int) -> None:
        gained = max(0, now - self._at) / 1000 * self._rate
        self._tokens = min(self._rate * self._seconds, self._tokens + gained)
        self._at = max(self._at, now)
