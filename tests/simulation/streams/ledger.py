"""What the log says of streams groups: read from the records alone, whatever the coordinator makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kohort.protocol.message import Data
from kohort.protocol.stored.streams_group_current_member_assignment import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
)
from kohort.protocol.stored.streams_group_member_metadata import (
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
)
from kohort.protocol.stored.streams_group_metadata import StreamsGroupMetadataKey, StreamsGroupMetadataValue
from kohort.protocol.stored.streams_group_target_assignment_member import StreamsGroupTargetAssignmentMemberKey
from kohort.protocol.stored.streams_group_target_assignment_metadata import StreamsGroupTargetAssignmentMetadataKey
from kohort.protocol.stored.streams_group_topology import StreamsGroupTopologyKey, StreamsGroupTopologyValue
from kohort.streams.tasks import TaskId
from tests.simulation.streams.member import Tasks

STABLE, UNREVOKED, UNRELEASED = 1, 2, 3  # as records have them


@dataclass(frozen=True)
class Current:
    """What the log says that a member holds.

    Attributes:
        epoch: the member's.
        previous_epoch: the one before.
        state: how far it has got.
        assigned: what it may have.
        pending: what it was told to give up, and may have still.
    """

    epoch: int
    previous_epoch: int
    state: int
    assigned: Tasks
    pending: Tasks

    @property
    def active(self) -> frozenset[TaskId]:
        return self.assigned.active | self.pending.active

    @property
    def all(self) -> frozenset[TaskId]:
        return self.active.union(*self.assigned, *self.pending)


@dataclass
class Group:
    """A group, as the log has it.

    Attributes:
        epoch: the group's; -1 without a record.
        assignment_epoch: the group epoch that the target assignment was made for.
        validated: the topology epoch whose topics were found in order; -1 for none.
        topology: the topology.
        members: what each member said about itself.
        current: what each member has.
        target: what each member is to have.
        owners: members that have a task as active.
        copies: members that have a copy of a task, by process and task.
    """

    group_id: str
    epoch: int = -1
    assignment_epoch: int = -1
    validated: int = -1
    topology: StreamsGroupTopologyValue | None = None
    members: dict[str, StreamsGroupMemberMetadataValue] = field(default_factory=dict)
    current: dict[str, Current] = field(default_factory=dict)
    target: dict[str, Tasks] = field(default_factory=dict)
    owners: dict[TaskId, set[str]] = field(default_factory=dict)
    copies: dict[tuple[str, TaskId], set[str]] = field(default_factory=dict)
    _indexed: dict[str, tuple[str, frozenset[TaskId], frozenset[TaskId]]] = field(default_factory=dict)

    def index(self, member_id: str) -> Iterable[TaskId]:
        """Bring owners and copies up to date for a member; returns the tasks concerned."""
        process, active, every = self._indexed.pop(member_id, ("", frozenset(), frozenset()))
        for task in active:
            self.owners[task].discard(member_id)
        for task in every:
            self.copies[process, task].discard(member_id)
        if current := self.current.get(member_id):
            process, active, every = self.members[member_id].process_id, current.active, current.all
            self._indexed[member_id] = process, active, every
            for task in active:
                self.owners.setdefault(task, set()).add(member_id)
            for task in every:
                self.copies.setdefault((process, task), set()).add(member_id)
        return every


class Ledger:
    """All groups, as the log has them.

    Attributes:
        groups: by id.
        touched: members whose tasks changed since it was last cleared, by group.
        placed: groups that got a new target assignment.
    """

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.touched: dict[tuple[str, str], None] = {}
        self.placed: dict[str, None] = {}

    def group(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id)
        return group

    def append(self, key: Data, value: Data | None) -> None:
        """Take in a record."""
        untyped: Any = value
        if isinstance(key, StreamsGroupMetadataKey):
            group = self.group(key.group_id)
            if isinstance(value, StreamsGroupMetadataValue):
                group.epoch, group.validated = value.epoch, value.validated_topology_epoch
            else:
                group.epoch = group.validated = -1
        elif isinstance(key, StreamsGroupTopologyKey):
            self.group(key.group_id).topology = untyped
        elif isinstance(key, StreamsGroupTargetAssignmentMetadataKey):
            self.group(key.group_id).assignment_epoch = untyped.assignment_epoch if untyped else -1
            self.placed[key.group_id] = None
        elif isinstance(key, StreamsGroupMemberMetadataKey):
            _put(self.group(key.group_id).members, key.member_id, untyped)
            self.touched[key.group_id, key.member_id] = None
        elif isinstance(key, StreamsGroupTargetAssignmentMemberKey):
            _put(self.group(key.group_id).target, key.member_id, untyped and _tasks(untyped))
        elif isinstance(key, StreamsGroupCurrentMemberAssignmentKey):
            _put(self.group(key.group_id).current, key.member_id, untyped and _current(untyped))
            self.touched[key.group_id, key.member_id] = None


def _put(values: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value


def _set(ids: Iterable[Any]) -> frozenset[TaskId]:
    return frozenset(TaskId(of.subtopology_id, partition) for of in ids for partition in of.partitions)


def _tasks(value: Any) -> Tasks:
    return Tasks(_set(value.active_tasks), _set(value.standby_tasks), _set(value.warmup_tasks))


def _current(value: StreamsGroupCurrentMemberAssignmentValue) -> Current:
    pending = Tasks(
        _set(value.active_tasks_pending_revocation),
        _set(value.standby_tasks_pending_revocation),
        _set(value.warmup_tasks_pending_revocation),
    )
    return Current(value.member_epoch, value.previous_member_epoch, value.state, _tasks(value), pending)
