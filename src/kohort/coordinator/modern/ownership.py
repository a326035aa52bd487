"""Which members hold an item, over a whole group."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from kohort.coordinator.modern.current_assignment import CurrentAssignment

I = TypeVar("I")  # noqa: E741
R = TypeVar("R")

_NOBODY: Final[Mapping[str, Any]] = MappingProxyType({})


class Ownership(Generic[I, R]):
    """The holders of each item, kept up to date as current assignments change.

    An item that a member has to revoke counts as held until the member has confirmed that.
    """

    __slots__ = ("_holders",)

    def __init__(self) -> None:
        self._holders: dict[I, dict[str, R]] = {}

    def __len__(self) -> int:
        """Number of items with a holder."""
        return len(self._holders)

    def holders(self, item: I) -> Mapping[str, R]:
        """The members that hold an item, with their roles."""
        return self._holders.get(item, _NOBODY)

    def change(
        self, member_id: str, before: CurrentAssignment[I, R] | None, after: CurrentAssignment[I, R] | None
    ) -> None:
        """A member's current assignment changes; None stands for a member that isn't there."""
        old = dict(before.held()) if before is not None else {}
        new = dict(after.held()) if after is not None else {}
        for item, role in new.items():
            if old.pop(item, None) != role:
                self._holders.setdefault(item, {})[member_id] = role
        for item in old:
            holders = self._holders[item]
            del holders[member_id]
            if not holders:
                del self._holders[item]
