"""How a share group is configured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ShareSettings:
    """A share group's settings, as far as membership needs them: Kafka's keys (`group.share.…`) and its defaults.

    Attributes:
        session_timeout_ms: time without a heartbeat after which a member is fenced.
        heartbeat_interval_ms: the time between heartbeats that members are told.
        moving_heartbeat_interval_ms: the same while the group is moving, and one normal interval longer, if shorter.
        assignment_interval_ms: least time between two targets; 0 for none.
        initialize_retry_interval_ms: time after which the state of a partition is initialized again that isn't yet.
        max_size: most members of the group.
        assignors: the server's assignors by name; the first one is used.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    moving_heartbeat_interval_ms: int = 500
    assignment_interval_ms: int = 1_000
    initialize_retry_interval_ms: int = 30_000
    max_size: int = 200
    assignors: tuple[str, ...] = ("simple",)
