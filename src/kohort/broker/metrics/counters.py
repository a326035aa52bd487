"""The broker's counters.

Requests pay for counting, so it is a few additions. The metrics are made of the counters, and of the broker's state,
when Prometheus scrapes (`exposition`).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from kohort.log.damage import Damage, DamageKind, tell
from kohort.protocol.errors import ErrorCode

API_KEYS: Final = 128
"""Room for API keys; Kafka's go up to 92."""

_MICROSECONDS: Final = 1_000_000


class ApiCounts:
    """Counters of one API.

    Attributes:
        seconds: sum of the times from requests to responses, waiting included.
        received, sent: bytes of requests and responses.
        buckets: requests by the bit length of their time in µs: bucket n holds those below 2ⁿ µs, and not below half
            of that.
    """

    __slots__ = ("buckets", "received", "seconds", "sent")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.received = 0
        self.sent = 0
        self.buckets = [0] * 64


class Metrics:
    """The counters of a broker.

    Attributes:
        accepted: connections accepted since the start.
        produce_failures, fetch_failures: partitions answered with an error, by error.
        damages: what was found lost or wrong in logs, by kind.
        lost_records, lost_bytes: of these; records that compaction had removed may be among them.
    """

    def __init__(self) -> None:
        self.apis = [ApiCounts() for _ in range(API_KEYS)]
        self.connections = 0
        self.accepted = 0
        self.produce_failures: Counter[ErrorCode] = Counter()
        self.fetch_failures: Counter[ErrorCode] = Counter()
        self.damages = Counter(dict.fromkeys(DamageKind, 0))
        self.lost_records = 0
        self.lost_bytes = 0

    def observe(self, key: int, seconds: float, received: int, sent: int) -> None:
        """Counts a request: its API key, time, and the bytes of request and response."""
        counts = self.apis[key]
        counts.seconds += seconds
        counts.received += received
        counts.sent += sent
        counts.buckets[int(seconds * _MICROSECONDS).bit_length()] += 1

    def produce_failed(self, code: ErrorCode) -> None:
        self.produce_failures[code] += 1

    def damaged(self, damage: Damage) -> None:
        """Logs and counts what was found lost or wrong in a log."""
        tell(damage)
        self.damages[damage.kind] += 1
        self.lost_records += damage.records
        self.lost_bytes += damage.size

    def fetch_failed(self, code: ErrorCode) -> None:
        self.fetch_failures[code] += 1
