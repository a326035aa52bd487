"""Where a member of a modern group stands: what it was given, what it is giving up, and its epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from kohort.coordinator.modern.states import MemberState

__all__ = ["Standing"]

I = TypeVar("I")  # noqa: E741  an item: what is assigned
R = TypeVar("R")  # a role: as what

_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Standing(Generic[I, R]):
    """Where a member stands; changes make a new one.

    Attributes:
        epoch: the member's epoch; 0 before it was given anything, `LEFT_FOR_A_WHILE` for a static one that is away.
        previous_epoch: its epoch before that, which it may still be on if our answer got lost.
        state: how far it is.
        assigned: what it was given, each item in its role.
        revoking: what it was told to give up and hasn't confirmed. An item may be in `assigned` too, in its new role.
        since: for items held in an exclusive role, the epoch in which they were given: older commits don't count.
    """

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Mapping[I, R] = field(default_factory=lambda: _NOTHING)
    revoking: Mapping[I, R] = field(default_factory=lambda: _NOTHING)
    since: Mapping[I, int] = field(default_factory=lambda: _NOTHING)

    def held(self) -> Iterator[tuple[I, R]]:
        """All that the member may have, with the role that weighs most: what it has to confirm to be rid of."""
        yield from self.revoking.items()
        for item, role in self.assigned.items():
            if item not in self.revoking:
                yield item, role

    def reached(self, epoch: int) -> bool:
        """Whether it has all that the target of this epoch gives it, and nothing else."""
        return self.state is MemberState.STABLE and self.epoch == epoch
