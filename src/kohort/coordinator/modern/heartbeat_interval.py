"""The time between heartbeats that members are told, of groups with a shorter one while partitions move."""

from __future__ import annotations

from typing import Protocol


class Intervals(Protocol):
    """A group's settings, as far as they matter here; times in ms."""

    @property
    def heartbeat_interval_ms(self) -> int: ...
    @property
    def moving_heartbeat_interval_ms(self) -> int: ...


def heartbeat_interval_ms(settings: Intervals, *, moving: bool, since_assigned_ms: int) -> int:
    """Returns the time to a member's next heartbeat.

    It stays short for one normal interval after the latest target: members come and go together (a deployment, a
    restart), and one that is told the normal interval hears of the next change only at its end.

    Args:
        moving: whether partitions move, or are about to.
        since_assigned_ms: the age of the target.
    """
    interval = settings.heartbeat_interval_ms
    short = moving or 0 <= since_assigned_ms < interval
    return min(interval, settings.moving_heartbeat_interval_ms) if short else interval
