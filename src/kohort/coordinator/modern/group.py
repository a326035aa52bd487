"""The state of a modern group that is in the log, and what is derived from it."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Final, Generic, Protocol, TypeVar

from kohort.coordinator.modern.cached_results import CachedResult
from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.epochs import FIRST_EPOCH
from kohort.coordinator.modern.ownership import Ownership


class Metadata(Protocol):
    """What a member says about itself, whatever the kind of group."""

    @property
    def instance_id(self) -> str | None: ...


M = TypeVar("M", bound=Metadata)
I = TypeVar("I")  # noqa: E741
R = TypeVar("R")
S = TypeVar("S")


class Member(Generic[M, I, R]):
    __slots__ = ("current", "member_id", "metadata")

    def __init__(self, member_id: str, metadata: M, current: CurrentAssignment[I, R] | None = None) -> None:
        self.member_id = member_id
        self.metadata = metadata
        self.current: CurrentAssignment[I, R] = CurrentAssignment() if current is None else current


class ModernGroup(ABC, Generic[M, I, R, S]):
    """A modern group. Replaying one of its records calls one `put_…` or `drop_…`, and `bump_revision`.

    Args:
        unknown: metadata of a member whose own record hasn't been replayed yet, since compaction may change the order.
        soft: the soft state of a new group.

    Attributes:
        assignment_epoch: the group epoch that the target was made for.
        assigned_at: when the target was made, in ms since 1970; 0 if it isn't known.
        members: by member id, in the order they came.
        static_ids: member ids of static members, by instance id.
        target: the target assignment, by member id.
        ownership: the holders of each item.
        soft: the soft state: what isn't in the log, and what a restart may lose; immutable. Equal ones lead to the same
            answers.
        revision: rises with every record, and with every change of soft state that an answer may depend on.
        cached_results: results of heartbeats, by member id, of this revision.
    """

    def __init__(self, group_id: str, unknown: M, soft: S) -> None:
        self.group_id: Final = group_id
        self.epoch = FIRST_EPOCH
        self.assignment_epoch = FIRST_EPOCH
        self.assigned_at = 0
        self.members: dict[str, Member[M, I, R]] = {}
        self.static_ids: dict[str, str] = {}
        self.target: dict[str, Mapping[I, R]] = {}
        self.ownership: Ownership[I, R] = Ownership()
        self.soft = soft
        self.revision = 0
        self.cached_results: dict[str, CachedResult] = {}
        self._unknown = unknown
        self._moving: set[str] | None = None  # members that haven't reached the target; None if it isn't known

    @property
    @abstractmethod
    def state(self) -> enum.Enum:
        """The state, whose value is its name in Kafka's tools. It follows from the records; nothing sets it."""

    @property
    def moving(self) -> Collection[str]:
        """The members that haven't reached the target."""
        if self._moving is None:
            epoch = self.assignment_epoch
            self._moving = {name for name, each in self.members.items() if not each.current.is_reconciled_to(epoch)}
        return self._moving

    @property
    def reconciled(self) -> bool:
        """Whether every member has reached the target."""
        return not self.moving

    def bump_revision(self) -> None:
        """Something has changed: what was derived from the group is out of date."""
        self.revision += 1
        self.cached_results.clear()

    def put_soft(self, soft: S) -> None:
        if soft is not self.soft and soft != self.soft:
            self.bump_revision()
        self.soft = soft

    def put_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def put_assignment_epoch(self, epoch: int, assigned_at: int = 0) -> None:
        self.assignment_epoch, self.assigned_at = epoch, assigned_at
        self._moving = None

    def put_metadata(self, member_id: str, metadata: M) -> None:
        """Adds a member, or changes what it says about itself."""
        member = self._member(member_id)
        self._forget_instance(member)
        member.metadata = metadata
        if metadata.instance_id is not None:
            self.static_ids[metadata.instance_id] = member_id

    def put_current(self, member_id: str, current: CurrentAssignment[I, R]) -> None:
        member = self._member(member_id)
        self.ownership.change(member_id, member.current, current)
        member.current = current
        self._note_moving(member)

    def put_target(self, member_id: str, holdings: Mapping[I, R]) -> None:
        self.target[member_id] = holdings

    def drop_current(self, member_id: str) -> None:
        if member_id in self.members:
            self.put_current(member_id, CurrentAssignment())

    def drop_target(self, member_id: str) -> None:
        self.target.pop(member_id, None)

    def drop_member(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is not None:
            self.drop_current(member_id)
            self._forget_instance(member)
            del self.members[member_id]
            if self._moving is not None:
                self._moving.discard(member_id)

    def _member(self, member_id: str) -> Member[M, I, R]:
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = Member(member_id, self._unknown)
            self._note_moving(member)
        return member

    def _note_moving(self, member: Member[M, I, R]) -> None:
        """Keeps `moving` up to date when one member has moved or is new: all of them would take too long for each."""
        if self._moving is None:
            return
        if member.current.is_reconciled_to(self.assignment_epoch):
            self._moving.discard(member.member_id)
        else:
            self._moving.add(member.member_id)

    def _forget_instance(self, member: Member[M, I, R]) -> None:
        instance_id = member.metadata.instance_id
        if instance_id is not None and self.static_ids.get(instance_id) == member.member_id:
            del self.static_ids[instance_id]
