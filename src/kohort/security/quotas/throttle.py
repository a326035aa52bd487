"""Counts what clients do against their quotas, and says how long who exceeds one has to wait."""

from __future__ import annotations

from kohort.security.quotas.kept import Kept
from kohort.security.quotas.limits import Key, Limits
from kohort.security.quotas.rate import Rate


class Throttle:
    """One kind of quota.

    Args:
        samples, sample_ms: of the rates (`quota.window.num`, `quota.window.size.seconds`).
        most_ms: the longest wait; None for none.

    Attributes:
        limits: may be replaced at any time; rates are kept.
    """

    def __init__(self, limits: Limits, samples: int, sample_ms: int, most_ms: int | None = None) -> None:
        self.limits = limits
        self._samples = samples
        self._sample_ms = sample_ms
        self._most_ms = most_ms
        self._rates: Kept[Key, Rate] = Kept()

    def record(self, user: str, client_id: str, value: float, now: int, *, take_back: bool = False) -> int:
        """Counts a value at a time in ms; returns how long the client has to wait, in ms.

        Args:
            take_back: whether a value for which the client would have to wait doesn't count.
        """
        if not self.limits:
            return 0
        limit = self.limits.of(user, client_id)
        if limit is None:
            return 0
        rate = self._rates.of(limit.key, now, self._new)
        rate.record(value, now)
        wait = rate.throttle_ms(limit.bound, now, self._most_ms)
        if wait and take_back:
            rate.record(-value, now)
        return wait

    def _new(self) -> Rate:
        return Rate(self._samples, self._sample_ms)
