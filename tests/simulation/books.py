"""What the checker writes down: requests, groups as they were, and what the log has of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.states import GroupState
from kohort.coordinator.step import Client
from kohort.protocol.stored.group_metadata import GroupMetadataValue

if TYPE_CHECKING:
    from tests.simulation.world import ClassicWorld


class InvariantError(AssertionError):
    """Something happened that must not."""


class Call:
    """A request at the coordinator."""

    __slots__ = ("answered", "client", "kind", "receiver", "request", "response", "world")

    def __init__(
        self, kind: str, request: Any, client: Client, receiver: Callable[[Any], object], world: ClassicWorld
    ) -> None:
        self.kind = kind
        self.request = request
        self.client = client
        self.receiver = receiver
        self.world = world
        self.answered = False
        self.response: Any = None

    def __call__(self, response: Any) -> None:
        if self.answered:
            raise InvariantError(f"{self.kind} answered twice: {self.request}")
        self.answered = True
        self.response = response
        self.world.note("answer", self.kind, self.request.member_id if self.kind != "leave" else "", response)
        self.world.checker.answered(self, response)
        self.world.receive(self.receiver, response)


class Book:
    """What the checker knows of a group: as of the last step that touched it."""

    __slots__ = (
        "began", "completing", "generation", "initial", "joined", "joining", "last_heartbeat", "longest_ms", "members",
        "new", "pending_sync", "rebalance_ms", "session", "state", "sync_ms", "syncing", "unsaved", "wait_ms",
        "waiting", "watched",
    )  # fmt: skip

    def __init__(self) -> None:
        self.state = GroupState.EMPTY
        self.generation = 0
        self.members: dict[str, str | None] = {}
        self.joining: frozenset[str] = frozenset()
        self.syncing: frozenset[str] = frozenset()
        self.pending_sync: frozenset[str] = frozenset()
        self.new: set[str] = set()  # wait for their first join
        self.joined: dict[str, int] = {}  # the generation that a member was told of last
        self.last_heartbeat: dict[str, int] = {}
        self.session: dict[str, int] = {}
        self.watched: set[str] = set()  # have an entry among the deadlines
        self.initial = False  # the rebalance gives the first members time, whoever has joined
        self.began = 0  # of the rebalance
        self.rebalance_ms = 0  # how long it may take the absent, at least
        self.longest_ms = 0  # the longest rebalance timeout of its members
        self.waiting = 0  # since when the first join waits
        self.wait_ms = 0  # how long it may, at most
        self.completing = 0  # since when the generation waits for syncs
        self.sync_ms = 0
        self.unsaved = False  # a record of it could not be written


def persisted(group: ClassicGroup | None) -> object:
    """What of a group has to be in the log while it isn't rebalancing."""
    if group is None:
        return None
    protocol = group.protocol or ""
    return (
        group.state,
        group.generation,
        group.protocol_type,
        group.protocol,
        group.leader,
        group.state_since,
        [
            (
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout_ms,
                member.rebalance_timeout_ms,
                member.protocols.get(protocol),
                member.assignment,
            )
            for member in group.members.values()
        ],
    )


def written(value: GroupMetadataValue | None) -> object:
    """The same, as the record has it."""
    if value is None:
        return None
    return (
        GroupState.STABLE if value.members else GroupState.EMPTY,
        value.generation,
        value.protocol_type or None,
        value.protocol,
        value.leader,
        value.current_state_timestamp,
        [
            (
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout,
                member.rebalance_timeout,
                member.subscription,
                member.assignment,
            )
            for member in value.members
        ],
    )
