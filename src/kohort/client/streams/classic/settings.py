"""The settings of a member of a classic streams group."""

from __future__ import annotations

from dataclasses import dataclass

from kohort.client.errors import ConfigError
from kohort.client.streams.classic.led_group import LeaderSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicSettings(LeaderSettings):
    """What a streams group has as its configuration, members of a classic group bring along; times in ms.

    The tasks are placed by the settings of the member that leads, so all members should have the same ones.

    Attributes:
        session_timeout_ms: the coordinator removes a member without a heartbeat for so long.
        heartbeat_interval_ms: time between heartbeats: how soon a member hears of a rebalance.

    Raises:
        ConfigError: a value that can't be.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000

    def __post_init__(self) -> None:
        for name in ("session_timeout_ms", "heartbeat_interval_ms", "probing_rebalance_interval_ms"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be more than 0")
        for name in ("num_standby_replicas", "max_warmup_replicas", "acceptable_recovery_lag"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 0 or more")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                f"heartbeat_interval_ms is {self.heartbeat_interval_ms}; it must be less than session_timeout_ms "
                f"({self.session_timeout_ms}), and is usually a third of it or less"
            )
