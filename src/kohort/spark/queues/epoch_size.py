"""How many records the next epoch takes: fewer after one that wasn't done in time, so that what hangs is found.

Which record hangs isn't known, so all of the epoch are handed out again. With fewer at a time the good ones are soon
done among themselves, and at its last delivery the one that hangs is alone: nothing else is given up with it.
"""

from __future__ import annotations

import math


class EpochSize:
    """Attributes:
    most: records that the next epoch may have, 1 at least.

    Args:
        max_records: of an epoch, as long as all goes well.
        max_deliveries: of a record. With 1, nothing can be found: it is given up at once.
    """

    def __init__(self, max_records: int, max_deliveries: int) -> None:
        self.most = self._full = max_records
        self._parts = max(2, math.ceil(max_records ** (1 / max(1, max_deliveries - 1))))
        self._done = 0

    def late(self) -> None:
        """An epoch wasn't done in time."""
        self.most = -(-self.most // self._parts)
        self._done = 0

    def done(self, records: int) -> None:
        """So many were done in time. When that were as many as a full epoch has, the next is full again."""
        self._done += records
        if self._done >= self._full:
            self.most = self._full
