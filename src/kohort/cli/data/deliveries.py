"""What was sent, until it is delivered."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable
from typing import Protocol, TypeAlias


class Delivery(Awaitable[object], Protocol):
    """Some records that were sent: awaited, it raises NotDeliveredError if some weren't delivered."""

    def done(self) -> bool:
        """Whether each was delivered, or has failed."""


Deliveries: TypeAlias = deque[tuple[Delivery, int]]
"""What was sent, and how many records."""
