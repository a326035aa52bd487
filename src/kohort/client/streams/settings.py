"""The settings of a member of a streams group."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from kohort.client.errors import ConfigError
from kohort.protocol.heartbeat_wishes import NO_TIMEOUT, Wishes
from kohort.streams.endpoint import Endpoint
from kohort.streams.topology import Topology, TopologyError, check

GroupProtocol = Literal["streams", "classic", "auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """What a member sends its group when it joins.

    Attributes:
        group_id: of the group, which is the application's id.
        topology: what the application is made of; the same for all members.
        member_id: its own; no other member ever has it.
        process_id: of the process that it runs in: members with the same one share a disk, and never have copies of
            one task twice.
        instance_id: makes it a static member, which may leave for a while and come back to its tasks.
        rack_id: the rack that it runs in.
        client_tags: by which standbys are spread: `{"zone": "eu-1a"}`.
        user_endpoint: where the application answers queries.
        rebalance_timeout_ms: how long it may take to close revoked tasks before the group fences it.
        disconnect_timeout_ms: how long its connection may be broken before the group fences it, where the coordinator
            knows of that (`kohort serve`); None: until its session ends.
        held_heartbeats: whether it hears of news at once, by a heartbeat that such a coordinator holds.

    Raises:
        ConfigError: a value that can't be.
    """

    group_id: str
    topology: Topology
    member_id: str
    process_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    user_endpoint: Endpoint | None = None
    rebalance_timeout_ms: int = 300_000
    disconnect_timeout_ms: int | None = None
    held_heartbeats: bool = False

    def __post_init__(self) -> None:
        for name in ("group_id", "member_id", "process_id"):
            if not getattr(self, name).strip():
                raise ConfigError(f"{name} must not be empty")
        for name in ("instance_id", "rack_id"):
            given = getattr(self, name)
            if given is not None and not given.strip():
                raise ConfigError(f"{name} must be None or not empty")
        try:
            check(self.topology)
        except TopologyError as error:
            raise ConfigError(str(error)) from None
        if self.rebalance_timeout_ms <= 0:
            raise ConfigError(f"rebalance_timeout_ms is {self.rebalance_timeout_ms}; it must be more than 0")
        if self.disconnect_timeout_ms is not None and self.disconnect_timeout_ms < 0:
            raise ConfigError(f"disconnect_timeout_ms is {self.disconnect_timeout_ms}; it must be None, 0 or more")
        if self.user_endpoint is not None and (
            not self.user_endpoint.host or not 0 < self.user_endpoint.port < 1 << 16
        ):
            raise ConfigError(f"user_endpoint {self.user_endpoint} needs a host, and a port from 1 to 65535")

    def wishes(self, max_wait_ms: int = 0, status_codes: Collection[int] = ()) -> Wishes | None:
        """What it asks of coordinators that know it; None if nothing.

        Args:
            max_wait_ms: how long this heartbeat may be held.
            status_codes: the statuses that it knows.
        """
        if self.disconnect_timeout_ms is None and not self.held_heartbeats:
            return None
        timeout = NO_TIMEOUT if self.disconnect_timeout_ms is None else self.disconnect_timeout_ms
        return Wishes(timeout, max_wait_ms, tuple(status_codes))
