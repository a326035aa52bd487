"""What the leader of a classic streams group is given, and what comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from kohort.client.streams.classic.versions import LATEST
from kohort.streams.topology import InternalTopic, Topology


class JoinedMember(NamedTuple):
    """A member, as JoinGroup's response lists it for the leader."""

    member_id: str
    instance_id: str | None
    subscription: bytes


class Topics(Protocol):
    """The topics of the cluster."""

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has; None if there is no such topic."""
        ...

    def matching(self, pattern: str) -> Sequence[str]:
        """Names of the topics that a regular expression matches as a whole, sorted; none if it doesn't compile."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderSettings:
    """How a leader assigns tasks; the names are Kafka Streams'.

    Attributes:
        assignor: "optimal" or "sticky".
        latest: the newest version of the messages that it knows.
    """

    num_standby_replicas: int = 0
    max_warmup_replicas: int = 2
    acceptable_recovery_lag: int = 10_000
    rack_aware_assignment_tags: tuple[str, ...] = ()
    probing_rebalance_interval_ms: int = 600_000
    assignor: str = "optimal"
    latest: int = LATEST


@dataclass(frozen=True, slots=True)
class Memory:
    """What a leader remembers from one rebalance to the next; another leader may know nothing of it.

    Attributes:
        refused: members that were told that they have no tasks, since their subscriptions couldn't be read.
    """

    refused: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAssignment:
    """What a leader answers.

    Attributes:
        assignments: bytes for SyncGroup, by member id, for all members.
        topology: the one that the group runs: that of the greatest epoch among the members.
        missing: internal topics to create, with their numbers of partitions. The leader's member creates them, waits
            until they exist, and calls `lead` again with the topics as they are then. If that fails, it sends these
            assignments: members get MISSING_INTERNAL_TOPICS as a status, and the leader's joins again later.
        seen: partitions of each topic that the assignment depends on, and names that patterns match. If
            `leader.topics_seen` returns anything else later, the leader's member joins again.
        moving: number of tasks that wait for warm-ups.
        messages: sentences for the log: members that can't be read, topologies that differ.
        memory: to hand to `lead` in the next rebalance. Only the one of the call whose assignments are sent counts.
    """

    assignments: Mapping[str, bytes]
    topology: Topology
    missing: tuple[InternalTopic, ...] = ()
    seen: Mapping[str, int | tuple[str, ...] | None] = field(default_factory=dict)
    moving: int = 0
    messages: tuple[str, ...] = ()
    memory: Memory = field(default_factory=Memory)
