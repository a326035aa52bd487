"""A member's settings, and its subscription."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kohort.client.errors import ConfigError

ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""Names of the assignors for the classic protocol."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """The topics that a consumer reads: by name, or those whose whole name matches a pattern.

    Attributes:
        topics: names; empty with a pattern.
        pattern: a regular expression. A classic group's members match it themselves, with Python's `re`; a consumer
            group's coordinator does, with RE2.
    """

    topics: frozenset[str] = frozenset()
    pattern: str | None = None

    def __post_init__(self) -> None:
        if self.topics and self.pattern is not None:
            raise ConfigError("subscribe to topics by name or by pattern, not both")

    def __bool__(self) -> bool:
        return bool(self.topics) or self.pattern is not None

    def matched(self, names: Iterable[str]) -> frozenset[str]:
        """Returns the topics among `names` that match the pattern; without a pattern, all the subscribed names."""
        if self.pattern is None:
            return self.topics
        try:
            expression = re.compile(self.pattern)
        except re.error as error:
            raise ConfigError(f"the pattern {self.pattern!r} isn't a regular expression: {error}") from None
        return frozenset(name for name in names if expression.fullmatch(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipSettings:
    """A member's settings, named as Kafka's; times in ms.

    Attributes:
        group_id, group_instance_id: the group, and a static member's name (KIP-345).
        group_protocol: "classic", or "consumer" (KIP-848).
        partition_assignment_strategy: classic: names of assignors, the preferred first.
        group_remote_assignor: consumer: the coordinator's assignor, such as "uniform" or "range"; None for its choice.
        session_timeout_ms: classic: the coordinator removes a member without a heartbeat for so long. Both: a member
            without a response for so long has lost its place.
        heartbeat_interval_ms: classic: time between heartbeats; in consumer groups the broker says.
        max_poll_interval_ms: how long the user may take between polls before the member leaves; also the rebalance
            timeout: how long the others wait for it.
        client_rack: where the consumer runs.
        request_timeout_ms: how long a response may take, other than to a join or sync.
        retry_backoff_ms, retry_backoff_max_ms: first and longest pause between attempts.
        exclude_internal_topics: whether patterns leave out Kafka's own topics.
    """

    group_id: str
    group_instance_id: str | None = None
    group_protocol: str = "classic"
    partition_assignment_strategy: tuple[str, ...] = ("range", "cooperative-sticky")
    group_remote_assignor: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    client_rack: str = ""
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    exclude_internal_topics: bool = True

    def __post_init__(self) -> None:
        if not self.group_id:
            raise ConfigError("group_id is empty; a member needs a group")
        if self.group_instance_id == "":
            raise ConfigError("group_instance_id is empty; a static member needs a name, a dynamic one None")
        if self.group_protocol not in ("classic", "consumer"):
            raise ConfigError(f'group_protocol={self.group_protocol!r} should be "classic" or "consumer"')
        strategy = self.partition_assignment_strategy
        if not strategy or len(set(strategy)) < len(strategy) or not set(strategy) <= set(ASSIGNORS):
            raise ConfigError(f"partition_assignment_strategy={strategy!r} should name some of {', '.join(ASSIGNORS)}")
        for name in ("session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms", "request_timeout_ms"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name}={getattr(self, name)} should be more than 0")
        if self.group_protocol == "classic" and self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                f"heartbeat_interval_ms={self.heartbeat_interval_ms} should be less than "
                f"session_timeout_ms={self.session_timeout_ms}, usually a third of it"
            )
