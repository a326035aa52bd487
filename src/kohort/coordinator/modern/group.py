"""The state of a modern group that outlives a restart, and what is derived from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from kohort.coordinator.modern.epochs import FIRST_EPOCH
from kohort.coordinator.modern.ownership import Ownership
from kohort.coordinator.modern.standing import Standing

__all__ = ["Member", "Metadata", "ModernGroup"]


class Metadata(Protocol):
    """What a member says about itself, whatever the kind of group."""

    @property
    def instance_id(self) -> str | None:
        """Name of a static member."""
        ...


M = TypeVar("M", bound=Metadata)
I = TypeVar("I")  # noqa: E741
R = TypeVar("R")


class Member(Generic[M, I, R]):
    """A member: what it says about itself, and where it stands."""

    __slots__ = ("member_id", "metadata", "standing")

    def __init__(self, member_id: str, metadata: M, standing: Standing[I, R] | None = None) -> None:
        self.member_id = member_id
        self.metadata = metadata
        self.standing: Standing[I, R] = Standing() if standing is None else standing


class ModernGroup(Generic[M, I, R]):
    """A modern group, as its records tell it: each `put_…` and `drop_…` is what replaying one of them does.

    Args:
        group_id: its id.
        unknown: what is known of a member whose own record hasn't been replayed yet; compaction may turn the order.

    Attributes:
        epoch: the group epoch.
        assignment_epoch: the epoch that the target was made for.
        members: by member id, in the order they came.
        static_ids: member ids of static members, by instance id.
        target: what each member shall hold in the end.
        ownership: who holds what.
        revision: rises with every change, so that what was derived from an older one is known to be old.
    """

    def __init__(self, group_id: str, unknown: M) -> None:
        self.group_id: Final = group_id
        self.epoch = FIRST_EPOCH
        self.assignment_epoch = FIRST_EPOCH
        self.members: dict[str, Member[M, I, R]] = {}
        self.static_ids: dict[str, str] = {}
        self.target: dict[str, Mapping[I, R]] = {}
        self.ownership: Ownership[I, R] = Ownership()
        self.revision = 0
        self._unknown = unknown
        self._reached: tuple[int, bool] = (-1, True)

    @property
    def reconciled(self) -> bool:
        """Whether every member has reached the target."""
        revision, reached = self._reached
        if revision != self.revision:
            epoch = self.assignment_epoch
            reached = all(member.standing.reached(epoch) for member in self.members.values())
            self._reached = self.revision, reached
        return reached

    def put_epoch(self, epoch: int) -> None:
        """The group's epoch is this now."""
        self.epoch = epoch
        self.revision += 1

    def put_assignment_epoch(self, epoch: int) -> None:
        """The target is for this epoch now."""
        self.assignment_epoch = epoch
        self.revision += 1

    def put_metadata(self, member_id: str, metadata: M) -> None:
        """A member comes, or says something else about itself."""
        member = self._member(member_id)
        self._forget_instance(member)
        member.metadata = metadata
        if metadata.instance_id is not None:
            self.static_ids[metadata.instance_id] = member_id
        self.revision += 1

    def put_standing(self, member_id: str, standing: Standing[I, R]) -> None:
        """A member stands elsewhere now."""
        member = self._member(member_id)
        self.ownership.change(member_id, member.standing, standing)
        member.standing = standing
        self.revision += 1

    def put_target(self, member_id: str, holdings: Mapping[I, R]) -> None:
        """What a member shall hold in the end."""
        self.target[member_id] = holdings
        self.revision += 1

    def drop_standing(self, member_id: str) -> None:
        """A member stands nowhere any more: it is going."""
        if member_id in self.members:
            self.put_standing(member_id, Standing())

    def drop_target(self, member_id: str) -> None:
        """A member shall hold nothing: it is going."""
        self.target.pop(member_id, None)
        self.revision += 1

    def drop_member(self, member_id: str) -> None:
        """A member is gone."""
        member = self.members.get(member_id)
        if member is not None:
            self.drop_standing(member_id)
            self._forget_instance(member)
            del self.members[member_id]
            self.revision += 1

    def _member(self, member_id: str) -> Member[M, I, R]:
        member = self.members.get(member_id)
        if member is None:
            member = self.members[member_id] = self.new_member(member_id, self._unknown)
        return member

    def new_member(self, member_id: str, metadata: M) -> Any:
        """Makes a member; kinds of groups that remember more about theirs override it."""
        return Member(member_id, metadata)

    def _forget_instance(self, member: Member[M, I, R]) -> None:
        instance_id = member.metadata.instance_id
        if instance_id is not None and self.static_ids.get(instance_id) == member.member_id:
            del self.static_ids[instance_id]
