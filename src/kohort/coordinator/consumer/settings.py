"""How a consumer group is configured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ConsumerSettings:
    """A consumer group's settings: Kafka's keys (`group.consumer.…`, per group `consumer.…`) and its defaults.

    Attributes:
        session_timeout_ms: time without a heartbeat after which a member is fenced.
        heartbeat_interval_ms: the time between heartbeats that members get.
        moving_heartbeat_interval_ms: the same while partitions move, and one normal interval longer, if shorter.
        max_size: most members of the group.
        assignors: names of the assignors that members may ask for, the default first.
        assignment_interval_ms: least time between two targets; 0 for none.
        regex_refresh_interval_ms: how often regular expressions are resolved though no topic was created.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    moving_heartbeat_interval_ms: int = 500
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    assignment_interval_ms: int = 1_000
    regex_refresh_interval_ms: int = 600_000
