"""The events that a streams member gives its application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from kohort.client.types import TopicPartition
from kohort.streams.endpoint import Endpoint
from kohort.streams.statuses import Status
from kohort.streams.tasks import Role, TaskId


class EndpointPartitions(NamedTuple):
    """The input partitions of the tasks that an instance runs, and of those whose state it has copies of."""

    active: frozenset[TopicPartition]
    standby: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Assigned:
    """Tasks to take on. They need no confirmation: opening them may take its time."""

    tasks: dict[TaskId, Role]


@dataclass(frozen=True, slots=True)
class Revoked:
    """Tasks to close: finish and commit their work, close them, then call `StreamsMember.closed`.

    Other members wait for them; a member that takes longer than the rebalance timeout is fenced.
    """

    tasks: dict[TaskId, Role]


@dataclass(frozen=True, slots=True)
class RolesChanged:
    """Tasks that go on in another role: the old one and the new one. Their state stays open.

    Where an active task becomes a copy, another member is to run it, and waits for `StreamsMember.closed`.
    """

    tasks: dict[TaskId, tuple[Role, Role]]


@dataclass(frozen=True, slots=True)
class Lost:
    """Tasks that are lost: others may run them already, so nothing of them can be committed any more.

    Stop and close them, then call `StreamsMember.closed`: the member joins again when all are closed. Tasks
    that were revoked and not closed yet are among them.
    """

    tasks: dict[TaskId, Role]


@dataclass(frozen=True, slots=True)
class StatusesChanged:
    """The group's statuses now; empty when all is well again. A stale topology shows here."""

    statuses: tuple[Status, ...]


@dataclass(frozen=True, slots=True)
class EndpointsChanged:
    """The partitions of each instance, by endpoint."""

    endpoints: dict[Endpoint, EndpointPartitions]


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """The whole application is to shut down. The member leaves: all tasks are revoked next, then the events end."""

    detail: str


Event: TypeAlias = Assigned | Revoked | RolesChanged | Lost | StatusesChanged | EndpointsChanged | ShutdownRequested
