"""What a streams member tells its application."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from kohort.client.types import TopicPartition
from kohort.streams.tasks import Role, TaskId

__all__ = [
    "Assigned", "Endpoint", "EndpointPartitions", "EndpointsChanged", "Event", "Lost", "Revoked", "RolesChanged",
    "ShutdownRequested", "Status", "StatusCode", "StatusesChanged",
]  # fmt: skip


class StatusCode(enum.IntEnum):
    """What a group may have to say to a member beside its tasks (KIP-1071)."""

    STALE_TOPOLOGY = 0
    """The group has a newer topology than the member: it gets no tasks until it comes back with that one."""
    MISSING_SOURCE_TOPICS = 1
    """Source topics don't exist: there are no tasks until they do."""
    INCORRECTLY_PARTITIONED_TOPICS = 2
    """Topics have other numbers of partitions than the topology needs: there are no tasks until that is mended."""
    MISSING_INTERNAL_TOPICS = 3
    """Internal topics are being created, or can't be: there are no tasks until they exist."""
    SHUTDOWN_APPLICATION = 4
    """A member asked that the whole application shut down."""
    ASSIGNMENT_DELAYED = 5
    """Tasks are still to be placed."""
    MISSING_CLIENT_TAGS = 6
    """The member lacks client tags that the group spreads standbys over."""


class Status(NamedTuple):
    """A status, and what the broker says about it. A code that isn't known yet is its bare number."""

    code: StatusCode | int
    detail: str


class Endpoint(NamedTuple):
    """Where an instance of the application answers queries."""

    host: str
    port: int


class EndpointPartitions(NamedTuple):
    """The input partitions of the tasks that an instance runs, and of those whose state it has copies of."""

    active: frozenset[TopicPartition]
    standby: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Assigned:
    """Tasks to take on. They need no confirmation: taking time to open them holds nobody up."""

    tasks: dict[TaskId, Role]


@dataclass(frozen=True, slots=True)
class Revoked:
    """Tasks to give up: finish and commit what they are at, close them, then say `StreamsMember.closed`.

    Others wait for them; who takes longer than the rebalance timeout is removed from the group.
    """

    tasks: dict[TaskId, Role]


@dataclass(frozen=True, slots=True)
class RolesChanged:
    """Tasks to go on with in another role: what each was, and what it is now. Its state need not be closed.

    Where an active task becomes a copy, somebody else is to run it, and waits for `StreamsMember.closed`.
    """

    tasks: dict[TaskId, tuple[Role, Role]]


@dataclass(frozen=True, slots=True)
class Lost:
    """Tasks that are gone: others may run them already, so nothing of them can be committed any more.

    Stop and close them, then say `StreamsMember.closed`: the member joins its group anew when all are closed. Tasks
    that were revoked and not closed yet are among them.
    """

    tasks: dict[TaskId, Role]


@dataclass(frozen=True, slots=True)
class StatusesChanged:
    """What the group has to say now; empty when all is well again. A stale topology shows here."""

    statuses: tuple[Status, ...]


@dataclass(frozen=True, slots=True)
class EndpointsChanged:
    """Which instance has which partitions now."""

    endpoints: dict[Endpoint, EndpointPartitions]


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """The whole application is to shut down. The member leaves: all tasks are revoked next, then the events end."""

    detail: str


Event: TypeAlias = Assigned | Revoked | RolesChanged | Lost | StatusesChanged | EndpointsChanged | ShutdownRequested
