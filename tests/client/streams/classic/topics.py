"""The topics of a cluster, as a leader sees them."""

from __future__ import annotations

from collections.abc import Sequence

from kohort.streams.patterns import matching


class Topics:
    """Partitions by topic."""

    def __init__(self, **partitions: int) -> None:
        self.counts: dict[str, int] = partitions

    def partitions(self, topic: str) -> int | None:
        return self.counts.get(topic)

    def matching(self, pattern: str) -> Sequence[str]:
        try:
            return matching(pattern, self.counts)
        except ValueError:
            return []
