"""What a streams member tells its application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from kohort.client.types import TopicPartition
from kohort.streams.endpoint import Endpoint
from kohort.streams.statuses import Status
from kohort.streams.tasks import Role, TaskId

__all__ = [
    "Assigned", "EndpointPartitions", "EndpointsChanged", "Event", "Lost", "Revoked", "RolesChanged",
    "ShutdownRequested", "StatusesChanged",
]  # fmt: skip


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
