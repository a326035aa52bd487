"""The time of a test's own broker."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kohort.testing.broker import Broker

__all__ = ["BrokerTime"]


class BrokerTime:
    """Moves a broker's clock, and nothing else."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def now(self) -> datetime:
        """The broker's time, in UTC."""
        return self._broker.now

    def advance(self, by: timedelta) -> None:
        """Moves it ahead, and returns when the broker has done what became due: see `Broker.advance`."""
        self._broker.advance(by)
