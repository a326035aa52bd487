"""How a streams group is configured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StreamsSettings:
    """A streams group's settings: Kafka's keys (`group.streams.…`, per group `streams.…`) and its defaults.

    Attributes:
        session_timeout_ms: time without a heartbeat after which a member is fenced.
        heartbeat_interval_ms: the time between heartbeats that members get.
        num_standby_replicas: standby copies of each stateful task.
        num_warmup_replicas: warm-up copies in the whole group at a time; 0 moves stateful tasks without warming up.
        acceptable_recovery_lag: records that a warm-up may lag behind and still take over.
        task_offset_interval_ms: how often members are to report their task offsets.
        assignment_interval_ms: least time between two targets; 0 for none.
        initial_rebalance_delay_ms: how long an empty group waits for more members before it assigns tasks.
        max_size: most members of the group.
        assignor_name: the assignor that places its tasks.
        rack_aware_assignment_tags: client tags over whose values standbys are spread.
        disconnect_timeout_ms: how long the connection of any member may be broken before it is fenced; below 0 as long
            as each member asks for, or until its session ends. Kafka has no such key.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    num_standby_replicas: int = 0
    num_warmup_replicas: int = 2
    acceptable_recovery_lag: int = 10_000
    task_offset_interval_ms: int = 60_000
    assignment_interval_ms: int = 1_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2**31 - 1
    assignor_name: str = "optimal"
    rack_aware_assignment_tags: tuple[str, ...] = ()
    disconnect_timeout_ms: int = -1

    def disconnect_timeout(self, asked_ms: int) -> int:
        """The disconnect timeout of a member that asks for one, in ms; below 0 for none."""
        return self.disconnect_timeout_ms if self.disconnect_timeout_ms >= 0 else asked_ms
