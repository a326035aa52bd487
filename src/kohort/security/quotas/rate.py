"""A rate over a sliding window, sampled as Kafka does (`quota.window.num`, `quota.window.size.seconds`).

The window is some samples of a second each. The rate counts what was recorded since the oldest sample began; a window
that has only begun counts as nearly full, so that a first burst isn't taken for a rate.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

SECOND_MS: Final = 1000


@dataclass(slots=True)
class _Sample:
    began: int
    total: float


class Rate:
    """What was recorded, a second.

    Args:
        samples: of the window, at least 2.
        sample_ms: how long each is.
    """

    __slots__ = ("_sample_ms", "_samples", "_window")

    def __init__(self, samples: int, sample_ms: int) -> None:
        self._samples = samples
        self._sample_ms = sample_ms
        self._window: deque[_Sample] = deque()

    def record(self, value: float, now: int) -> None:
        """Counts a value at a time in ms, which doesn't go back by much."""
        self._forget(now)
        window = self._window
        if not window or now - window[-1].began >= self._sample_ms:
            window.append(_Sample(now, 0.0))
        window[-1].total += value

    def measure(self, now: int) -> float:
        """The rate a second."""
        window_ms = self._window_ms(now)
        return sum(sample.total for sample in self._window) * SECOND_MS / window_ms

    def throttle_ms(self, bound: float, now: int, most: int | None = None) -> int:
        """How long nothing may be recorded for the rate to come down to its bound; at most `most` ms."""
        rate = self.measure(now)
        if rate <= bound:
            return 0
        if bound <= 0:
            return most if most is not None else self._samples * self._sample_ms
        wait = round((rate - bound) / bound * self._window_ms(now))
        return wait if most is None else min(wait, most)

    def idle(self, now: int) -> bool:
        """Whether nothing of it is left."""
        self._forget(now)
        return not self._window

    def _forget(self, now: int) -> None:
        oldest = now - self._samples * self._sample_ms
        while self._window and self._window[0].began <= oldest:
            self._window.popleft()

    def _window_ms(self, now: int) -> int:
        self._forget(now)
        elapsed = now - self._window[0].began if self._window else 0
        full = elapsed // self._sample_ms
        return max(1, elapsed + max(0, self._samples - 1 - full) * self._sample_ms)
