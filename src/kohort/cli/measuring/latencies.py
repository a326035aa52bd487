"""Latencies of many records in little memory: to about one percent, however many and however long they are."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

_STEP: Final = math.log(1.01)
_LEAST: Final = 1e-6
"""Seconds below which all are the same."""

SHARES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}


class Latencies:
    """Counts latencies, in seconds. The mean and the longest are exact."""

    def __init__(self) -> None:
        self.count = 0
        self.longest = 0.0
        self._sum = 0.0
        self._buckets: Counter[int] = Counter()

    def add(self, seconds: float, records: int = 1) -> None:
        """Counts the latency of some records."""
        self.count += records
        self.longest = max(self.longest, seconds)
        self._sum += seconds * records
        self._buckets[math.ceil(math.log(max(seconds, _LEAST) / _LEAST) / _STEP)] += records

    @property
    def mean(self) -> float:
        return self._sum / self.count if self.count else 0.0

    def at(self, share: float) -> float:
        """The latency that this share of records doesn't exceed; rounded up by 1 % at most. 0 without records."""
        wanted = math.ceil(share * self.count)
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= wanted:
                return min(self.longest, _LEAST * math.exp(bucket * _STEP))
        return 0.0

    def as_json(self) -> dict[str, float] | None:
        """In ms, to a microsecond; None without records."""
        if not self.count:
            return None
        found = {"mean": self.mean} | {name: self.at(share) for name, share in SHARES.items()} | {"max": self.longest}
        return {name: round(seconds * 1000, 3) for name, seconds in found.items()}
