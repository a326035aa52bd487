"""A streams group as it will be when the records of the current step are in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, ParamSpec

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.step import Record
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.member import StreamsMetadata
from kohort.coordinator.streams.records import (
    assignment_epoch_record,
    current_assignment_record,
    group_record,
    member_record,
    member_tombstones,
    target_record,
    topology_record,
)
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import Topology

log = logging.getLogger(__name__)

P = ParamSpec("P")

_NO_TASKS: Final[Mapping[TaskId, Role]] = {}
_NO_ASSIGNMENT: Final[CurrentAssignment[TaskId, Role]] = CurrentAssignment()


class Draft:
    """A group with changes that aren't made yet.

    A change that is to be in the log adds the record that makes it so; `apply` makes the others.

    Attributes:
        records: the records of the changes, in order.
        epoch, assignment_epoch, topology, metadata_hash, validated_topology_epoch, configs: the group's, changed.
        soft: the group's soft state, changed.
        revision: the group's, without the changes.
    """

    def __init__(self, group: StreamsGroup, settings: StreamsSettings) -> None:
        self.group = group
        self.settings = settings
        self.records: list[Record] = []
        self.epoch = group.epoch
        self.assignment_epoch = group.assignment_epoch
        self.topology = group.topology
        self.metadata_hash = group.metadata_hash
        self.validated_topology_epoch = group.validated_topology_epoch
        self.configs = group.configs
        self.soft = group.soft
        self.revision = group.revision
        self._effects: list[Callable[[], object]] = []
        self._metadata: dict[str, StreamsMetadata] = {}
        self._current: dict[str, CurrentAssignment[TaskId, Role]] = {}
        self._removed: set[str] = set()
        self._targets: dict[str, Mapping[TaskId, Role]] = {}

    # What it will be --------------------------------------------------------------------------------------------

    def members(self) -> dict[str, tuple[StreamsMetadata, CurrentAssignment[TaskId, Role]]]:
        members = {
            member_id: (member.metadata, member.current)
            for member_id, member in self.group.members.items()
            if member_id not in self._removed
        }
        for member_id in dict.fromkeys((*self._metadata, *self._current)):
            metadata, current = members.get(member_id, (StreamsMetadata(), _NO_ASSIGNMENT))
            members[member_id] = (
                self._metadata.get(member_id, metadata),
                self._current.get(member_id, current),
            )
        return members

    def target(self, member_id: str) -> Mapping[TaskId, Role]:
        if member_id in self._targets:
            return self._targets[member_id]
        return self.group.target.get(member_id, _NO_TASKS)

    # Changes ----------------------------------------------------------------------------------------------------

    def put_member(self, member_id: str, metadata: StreamsMetadata) -> None:
        self._metadata[member_id] = metadata
        self._removed.discard(member_id)
        self.records.append(member_record(self.group.group_id, member_id, metadata))

    def put_current(self, member_id: str, current: CurrentAssignment[TaskId, Role]) -> None:
        """Changes a member's current assignment."""
        self._current[member_id] = current
        self.records.append(current_assignment_record(self.group.group_id, member_id, current))

    def assume(self, member_id: str, current: CurrentAssignment[TaskId, Role]) -> None:
        """Sets a member's current assignment without a record; `put_current` has to follow."""
        self._current[member_id] = current

    def remove_member(self, member_id: str) -> None:
        self._removed.add(member_id)
        self.records += member_tombstones(self.group.group_id, member_id)
        self.soft = self.soft.without_member(member_id)
        if not self.members():
            self.soft = replace(self.soft, shutdown_by=None)

    def put_topology(self, topology: Topology) -> None:
        self.topology = topology
        self.records.append(topology_record(self.group.group_id, topology))

    def put_target(self, member_id: str, tasks: Mapping[TaskId, Role]) -> None:
        self._targets[member_id] = tasks
        self.records.append(target_record(self.group.group_id, member_id, tasks))

    def put_targets(self, targets: Mapping[str, Mapping[TaskId, Role]]) -> None:
        """Sets the target of all members, for the group's epoch; members without an entry get no tasks."""
        for member_id in self.members():
            tasks = targets.get(member_id, _NO_TASKS)
            known = self._targets.get(member_id, self.group.target.get(member_id))
            if known != tasks:
                self.put_target(member_id, tasks)
        self.put_assignment_epoch()

    def put_assignment_epoch(self) -> None:
        """Sets the assignment epoch to the group's epoch."""
        self.assignment_epoch = self.epoch
        self.records.append(assignment_epoch_record(self.group.group_id, self.epoch))

    def bump(self, why: str) -> None:
        self.epoch += 1
        log.info("epoch bumped group=%s epoch=%d because=%s", self.group.group_id, self.epoch, why)
        self.records.append(
            group_record(
                self.group.group_id, self.epoch, self.metadata_hash, self.validated_topology_epoch, self.configs
            )
        )

    def then(self, effect: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Adds what is done when the records are in the log, such as starting a timer."""
        self._effects.append(partial(effect, *args, **kwargs))

    def apply(self, group: StreamsGroup) -> None:
        """Applies what isn't in the records, once they are replayed.

        Args:
            group: the group. Its first records make it anew, so it may be another object than the draft's.
        """
        group.put_soft(self.soft)
        for effect in self._effects:
            effect()
