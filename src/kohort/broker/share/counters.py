"""What share groups did since the broker started; for metrics."""

from __future__ import annotations

from collections.abc import Sequence

from kohort.broker.share.acknowledgements import RENEW, Batch, counts_by_type


class ShareCounters:
    """Counts.

    Attributes:
        acquired: records given to members.
        by_type: records by how they were acknowledged: gaps, accepted, released, rejected, renewed.
        failed_acknowledgements: acknowledgements of a partition that weren't taken.
        failed_fetches: partitions that were answered with an error.
        evicted_sessions: sessions that ended with their connection.
    """

    __slots__ = ("acquired", "by_type", "evicted_sessions", "failed_acknowledgements", "failed_fetches")

    def __init__(self) -> None:
        self.acquired = 0
        self.by_type = [0] * (RENEW + 1)
        self.failed_acknowledgements = 0
        self.failed_fetches = 0
        self.evicted_sessions = 0

    def acknowledged(self, batches: Sequence[Batch]) -> None:
        """Counts the acknowledgements of a partition that were taken."""
        for kind, count in enumerate(counts_by_type(batches)):
            self.by_type[kind] += count
