"""A modern group as it will be when the records of the current step are in the log."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeVar

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.epochs import LEAVE_GROUP_STATIC_MEMBER_EPOCH
from kohort.coordinator.modern.group import Metadata, ModernGroup
from kohort.coordinator.step import Answer, Record

log = logging.getLogger(__name__)

P = ParamSpec("P")
M = TypeVar("M", bound=Metadata)
I = TypeVar("I")  # noqa: E741
R = TypeVar("R")
S = TypeVar("S")

_NOTHING: Final[Mapping[Any, Any]] = {}
_NO_ASSIGNMENT: Final[CurrentAssignment[Any, Any]] = CurrentAssignment()


class MemberRecords(Protocol):
    """Makes the records of members and of the target; a kind of groups has a module with these functions.

    `member_record(group_id, member_id, metadata)`, `current_assignment_record(group_id, member_id, current)`,
    `target_record(group_id, member_id, items)` and `assignment_epoch_record(group_id, epoch, assigned_at)` each make
    one record.
    """

    @property
    def member_record(self) -> Callable[[str, str, Any], Record]: ...

    @property
    def current_assignment_record(self) -> Callable[[str, str, Any], Record]: ...

    @property
    def target_record(self) -> Callable[[str, str, Any], Record]: ...

    @property
    def assignment_epoch_record(self) -> Callable[[str, int, int], Record]: ...

    @property
    def member_tombstones(self) -> Callable[[str, str], list[Record]]:
        """The tombstones of a member: its current assignment, its target, and itself, in this order."""
        ...


class ModernDraft(ABC, Generic[M, I, R, S]):
    """A group with changes that aren't made yet.

    A change that is to be in the log adds the record that makes it so; `apply` makes the others.

    Args:
        member_records: makes records.
        unknown: the metadata of a member that hasn't any yet.

    Attributes:
        records: the records of the changes, in order.
        now: in ms since 1970.
        epoch, assignment_epoch, assigned_at: the group's, changed.
        soft: the group's soft state, changed.
        revision: the group's, without the changes.
        answers: answers to earlier requests, which the changes decide.
        converted: goes on with the group as one of another kind, once the records are replayed that make it so. None:
            it stays of this kind.
    """

    def __init__(self, group: ModernGroup[M, I, R, S], member_records: MemberRecords, unknown: M, now: int) -> None:
        self._modern: Final = group
        self._member_records: Final = member_records
        self._unknown: Final = unknown
        self.now = now
        self.records: list[Record] = []
        self.epoch = group.epoch
        self.assignment_epoch = group.assignment_epoch
        self.assigned_at = group.assigned_at
        self.soft = group.soft
        self.revision = group.revision
        self.answers: list[Answer] = []
        self.converted: Callable[[], object] | None = None
        self._effects: list[Callable[[], object]] = []
        self._metadata: dict[str, M] = {}
        self._current: dict[str, CurrentAssignment[I, R]] = {}
        self._removed: set[str] = set()
        self._targets: dict[str, Mapping[I, R]] = {}

    @abstractmethod
    def group_record(self) -> Record:
        """The record with the group's epoch, and with what it was bumped for."""

    @property
    def group_id(self) -> str:
        return self._modern.group_id

    # What it will be --------------------------------------------------------------------------------------------

    def is_empty(self) -> bool:
        return not self._metadata and not self._current and len(self._removed) == len(self._modern.members)

    def metadata(self, member_id: str) -> M | None:
        """What a member says about itself; None if there is no such member."""
        if member_id in self._metadata:
            return self._metadata[member_id]
        known = None if member_id in self._removed else self._modern.members.get(member_id)
        return None if known is None else known.metadata

    def member_count(self) -> int:
        """The number of members; takes time in proportion to those that change."""
        members = self._modern.members
        new = sum(member_id not in members for member_id in {**self._metadata, **self._current})
        return len(members) - len(self._removed) + new

    def members(self) -> dict[str, tuple[M, CurrentAssignment[I, R]]]:
        """Metadata and current assignment by member id; takes time in proportion to the members."""
        members: dict[str, tuple[M, CurrentAssignment[I, R]]] = {
            member_id: (member.metadata, member.current)
            for member_id, member in self._modern.members.items()
            if member_id not in self._removed
        }
        for member_id in dict.fromkeys((*self._metadata, *self._current)):
            known = members.get(member_id)
            metadata, current = (self._unknown, _NO_ASSIGNMENT) if known is None else known
            members[member_id] = (
                self._metadata.get(member_id, metadata),
                self._current.get(member_id, current),
            )
        return members

    def target(self, member_id: str) -> Mapping[I, R]:
        if member_id in self._targets:
            return self._targets[member_id]
        return self._modern.target.get(member_id, _NOTHING)

    def has_target_of_late(self, interval_ms: int) -> bool:
        """Whether the target was made less than an interval ago, so that the next has to wait (KIP-1263).

        A clock that was set back by more than that holds nothing up.
        """
        return self.assigned_at != 0 and abs(self.now - self.assigned_at) < interval_ms

    def is_moving(self) -> bool:
        """Whether a member hasn't reached the target of the group's epoch; static members that are away don't count.

        Takes time in proportion to the members that move, or to all members if the draft has a new target.
        """
        epoch, group = self.assignment_epoch, self._modern
        if self.epoch != epoch:
            return True
        behind = group.moving if epoch == group.assignment_epoch else group.members
        unchanged = (
            group.members[name].current for name in behind if name not in self._current and name not in self._removed
        )
        return any(
            current.epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH and not current.is_reconciled_to(epoch)
            for current in chain(self._current.values(), unchanged)
        )

    # Changes ----------------------------------------------------------------------------------------------------

    def put_member(self, member_id: str, metadata: M) -> None:
        self._metadata[member_id] = metadata
        self._removed.discard(member_id)
        self.records.append(self._member_records.member_record(self.group_id, member_id, metadata))

    def put_current(self, member_id: str, current: CurrentAssignment[I, R]) -> None:
        """Changes a member's current assignment."""
        self._current[member_id] = current
        self.records.append(self._member_records.current_assignment_record(self.group_id, member_id, current))

    def assume(self, member_id: str, current: CurrentAssignment[I, R]) -> None:
        """Sets a member's current assignment without a record; `put_current` has to follow."""
        self._current[member_id] = current

    def remove_member(self, member_id: str) -> None:
        for changed in (self._metadata, self._current, self._targets):
            changed.pop(member_id, None)
        if member_id in self._modern.members:
            self._removed.add(member_id)
        self.records += self._member_records.member_tombstones(self.group_id, member_id)

    def put_target(self, member_id: str, items: Mapping[I, R]) -> None:
        self._targets[member_id] = items
        self.records.append(self._member_records.target_record(self.group_id, member_id, items))

    def put_targets(self, targets: Mapping[str, Mapping[I, R]]) -> None:
        """Sets the target of all members, for the group's epoch; members without an entry get nothing.

        A target without entries, as of a group that isn't ready, is none that another has to wait after.
        """
        for member_id in self.members():
            items = targets.get(member_id, _NOTHING)
            known = self._targets.get(member_id, self._modern.target.get(member_id))
            if known != items:
                self.put_target(member_id, items)
        if targets:
            self.assigned_at = self.now
        self.put_assignment_epoch()

    def put_assignment_epoch(self) -> None:
        """Sets the assignment epoch to the group's epoch."""
        self.assignment_epoch = self.epoch
        self.records.append(self._member_records.assignment_epoch_record(self.group_id, self.epoch, self.assigned_at))

    def bump(self, why: str) -> None:
        self.epoch += 1
        log.info("epoch bumped group=%s epoch=%d because=%s", self.group_id, self.epoch, why)
        self.records.append(self.group_record())

    def then(self, effect: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Adds what is done when the records are in the log, such as starting a timer."""
        self._effects.append(partial(effect, *args, **kwargs))

    def apply(self, group: ModernGroup[M, I, R, S]) -> None:
        """Applies what isn't in the records, once they are replayed.

        Args:
            group: the group. Its first records make it anew, so it may be another object than the draft's.
        """
        group.put_soft(self.soft)
        for effect in self._effects:
            effect()
