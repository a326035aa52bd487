"""What the leader of a classic streams group is given, and what comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol
from uuid import UUID

from kohort.client.streams.classic.versions import LATEST
from kohort.streams.tasks import TaskId
from kohort.streams.topology import InternalTopic, Topology


class JoinedMember(NamedTuple):
    """A member, as JoinGroup's response lists it for the leader."""

    member_id: str
    instance_id: str | None
    subscription: bytes


class TopicSeen(NamedTuple):
    """What an assignment depends on of a topic; None while there is none of its name."""

    topic_id: UUID | None
    partitions: int | None


class Topics(Protocol):
    """The topics of the cluster."""

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has; None if there is no such topic."""
        ...

    def topic_id(self, topic: str) -> UUID | None:
        """A topic's id, another one when it was deleted and created again; None if there is no such topic."""
        ...

    def matching(self, pattern: str) -> Sequence[str]:
        """Names of the topics that a regular expression matches as a whole, sorted; none if it doesn't compile."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderSettings:
    """How a leader assigns tasks; the names are Kafka Streams'.

    Attributes:
        max_warmup_replicas: most warm-ups at a time in the group; with 0, tasks move at once.
        acceptable_recovery_lag: records that a copy may lag and still take its task over.
        rack_aware_assignment_tags: client tags by whose values standbys are spread.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAssignment:
    """What a leader answers.

    Attributes:
        assignments: bytes for SyncGroup, by member id, for all members.
        topology: the one that the group runs.
        missing: internal topics to create, with their numbers of partitions. The leader's member creates them, waits
            until they exist, and calls `lead` again with the topics as they are then. If that fails, it sends these
            assignments: members get MISSING_INTERNAL_TOPICS as a status, and the leader's joins again later.
        seen: what the assignment depends on, by topic, those included that patterns match. When
            `leader.topics_seen` returns something else later, the leader's member joins again.
        moving: number of tasks that wait for warm-ups.
        messages: sentences for the log: members that can't be read, topologies that differ.
        static: active tasks by instance id, while nobody else has them, to hand to `lead` in the next rebalance: a
            static member that comes back without any gets its own again.
    """

    assignments: Mapping[str, bytes]
    topology: Topology
    missing: tuple[InternalTopic, ...] = ()
    seen: Mapping[str, TopicSeen] = field(default_factory=dict)
    moving: int = 0
    messages: tuple[str, ...] = ()
    static: Mapping[str, frozenset[TaskId]] = field(default_factory=dict)
