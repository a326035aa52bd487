"""Settings of classic groups, by Kafka's names."""

from __future__ import annotations

from typing import Final, Protocol

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""How long a new member's first join may wait, in ms; it sends no heartbeats meanwhile. Kafka's, not configurable."""


class ClassicSettings(Protocol):
    @property
    def group_min_session_timeout_ms(self) -> int: ...

    @property
    def group_max_session_timeout_ms(self) -> int: ...

    @property
    def group_initial_rebalance_delay_ms(self) -> int:
        """How long an empty group waits for more members after the first (`InitialDelayedJoin`)."""
        ...

    @property
    def group_max_size(self) -> int: ...
