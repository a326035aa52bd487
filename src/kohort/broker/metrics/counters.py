"""What the broker counts of itself.

Counting happens within requests, so it is a few additions to plain numbers; what Prometheus wants of them is made when
it asks (`exposition`), and what can be asked of the broker at that time isn't counted at all.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from kohort.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker

__all__ = ["ApiCounts", "Metrics"]

API_KEYS: Final = 128
"""API keys that there is room for; Kafka's go up to 92."""

_MICROSECONDS: Final = 1_000_000


class ApiCounts:
    """What is counted of one API.

    Attributes:
        seconds: time from the arrival of requests to their answers, waiting included, summed.
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
        broker: whose they are.
        apis: counts by API key.
        connections: connections open now.
        accepted: connections accepted since the start.
        produce_failures, fetch_failures: partitions of requests that were answered with an error, by error.
    """

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.apis = [ApiCounts() for _ in range(API_KEYS)]
        self.connections = 0
        self.accepted = 0
        self.produce_failures: Counter[ErrorCode] = Counter()
        self.fetch_failures: Counter[ErrorCode] = Counter()

    def observe(self, key: int, seconds: float, received: int, sent: int) -> None:
        """Count a request: the key of its API, the time it took, and bytes of request and response."""
        counts = self.apis[key]
        counts.seconds += seconds
        counts.received += received
        counts.sent += sent
        counts.buckets[int(seconds * _MICROSECONDS).bit_length()] += 1

    def produce_failed(self, code: ErrorCode) -> None:
        """Count a partition that records couldn't be written to."""
        self.produce_failures[code] += 1

    def fetch_failed(self, code: ErrorCode) -> None:
        """Count a partition that couldn't be read from."""
        self.fetch_failures[code] += 1
