"""The topics of a cluster, as a leader sees them."""

from __future__ import annotations

import re
from collections.abc import Sequence


class Topics:
    """Partitions by topic."""

    def __init__(self, **partitions: int) -> None:
        self.counts: dict[str, int] = partitions

    def partitions(self, topic: str) -> int | None:
        return self.counts.get(topic)

    def matching(self, pattern: str) -> Sequence[str]:
        try:
            return [name for name in sorted(self.counts) if re.fullmatch(pattern, name)]
        except re.error:
            return []
