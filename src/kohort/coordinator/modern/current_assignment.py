"""The current assignment of a member: its epoch, what it was given, and what it has to revoke.

Kafka stores it as Consumer-, Streams- or ShareGroupCurrentMemberAssignment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from kohort.coordinator.modern.states import MemberState

I = TypeVar("I")  # noqa: E741  an item: what is assigned
R = TypeVar("R")  # a role: as what

_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CurrentAssignment(Generic[I, R]):
    """The current assignment of a member; immutable.

    Attributes:
        epoch: the member epoch; 0 before it was given anything, `LEAVE_GROUP_STATIC_MEMBER_EPOCH` for a static member
            that is away.
        previous_epoch: the member epoch before that, which the member may still be on if an answer is lost.
        state: how far it is on its way to the target.
        assigned: what it was given, each item in its role.
        revoking: what it was told to revoke and hasn't confirmed (Kafka: pending revocation). An item may be in
            `assigned` too, in its new role.
        assignment_epochs: for items held in an exclusive role, the member epoch in which they were given. Commits on an
            older epoch don't count.
    """

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Mapping[I, R] = field(default_factory=lambda: _NOTHING)
    revoking: Mapping[I, R] = field(default_factory=lambda: _NOTHING)
    assignment_epochs: Mapping[I, int] = field(default_factory=lambda: _NOTHING)

    def held(self) -> Iterator[tuple[I, R]]:
        """All that the member may have, each item once: where a role is being revoked, in that role."""
        yield from self.revoking.items()
        for item, role in self.assigned.items():
            if item not in self.revoking:
                yield item, role

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has all that the target of this epoch gives it, and nothing else."""
        return self.state is MemberState.STABLE and self.epoch == epoch
