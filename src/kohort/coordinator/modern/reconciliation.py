"""How a member gets from its current assignment to the target, without two members ever holding the same item.

Kafka's CurrentAssignmentBuilder.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.states import MemberState

I = TypeVar("I")  # noqa: E741
R = TypeVar("R")


class Conversion(enum.Enum):
    """How the role of an item changes that a member goes on holding.

    AT_ONCE: it gets the new role at once, and there is nothing to confirm.
    WHEN_FREE: it keeps the old role until the new one is free.
    ON_CONFIRMATION: it gets the new role at once, and others wait until it confirms that it revoked the old one.
    """

    AT_ONCE = enum.auto()
    WHEN_FREE = enum.auto()
    ON_CONFIRMATION = enum.auto()


@dataclass(frozen=True, slots=True)
class Rules(Generic[R]):
    """What differs between kinds of groups.

    Attributes:
        exclusive: roles in which only one member may hold an item; its revocation has to be confirmed.
        conversion: how an item's role changes from the first to the second.
        waits: whether revocations have to be confirmed before other members get the items.
    """

    exclusive: frozenset[R]
    conversion: Callable[[R, R], Conversion]
    waits: bool = True


def reconcile(
    current: CurrentAssignment[I, R],
    target: Mapping[I, R],
    target_epoch: int,
    owned: Mapping[I, R] | None,
    free: Callable[[I, R], bool],
    rules: Rules[R],
    *,
    forced: bool = False,
) -> CurrentAssignment[I, R]:
    """The next assignment of a member, or the same object if it can't move.

    Args:
        owned: what the member says it has; None if it doesn't say so, or if what it says may be outdated.
        free: whether no *other* member has an item in a way that keeps this one from having it in a role.
        forced: looks at the target even if the member has reached its epoch, as part of it has become void since.
    """
    if current.state is MemberState.STABLE and current.epoch == target_epoch and not forced:
        return current
    if not rules.waits:
        return _changed(current, target_epoch, MemberState.STABLE, dict(target), {}, rules)
    epoch = current.epoch
    if current.state is MemberState.UNREVOKED:
        if _still_has(owned, current.revoking, current.assigned):
            return current
        epoch = min(epoch + 1, target_epoch)

    kept: dict[I, R] = {}
    added: dict[I, R] = {}
    promoted: dict[I, R] = {}  # added ones, in their old role
    revoked: dict[I, R] = {}
    waiting = False
    for item, role in current.assigned.items():
        wanted = target.get(item)
        if wanted is None:
            revoked[item] = role
        elif wanted == role:
            kept[item] = role
        else:
            conversion = rules.conversion(role, wanted)
            if conversion is Conversion.AT_ONCE:
                kept[item] = wanted
            elif conversion is Conversion.ON_CONFIRMATION:
                kept[item] = wanted
                revoked[item] = role
            elif free(item, wanted):
                added[item] = wanted
                promoted[item] = role
            else:
                kept[item] = role
                waiting = True
    for item, wanted in target.items():
        if item not in current.assigned:
            if free(item, wanted):
                added[item] = wanted
            else:
                waiting = True

    if revoked and _still_has(owned, revoked, kept):
        return _changed(current, epoch, MemberState.UNREVOKED, kept | promoted, revoked, rules)
    state = MemberState.UNRELEASED if waiting else MemberState.STABLE
    return _changed(current, target_epoch, state, kept | added, {}, rules)


def _still_has(owned: Mapping[I, R] | None, given_up: Mapping[I, R], kept: Mapping[I, R]) -> bool:
    """Whether a member may still have some of what it has to revoke.

    It may own an item in any role, since it may not know the latest yet. An item that it keeps in another role doesn't
    count.
    """
    return owned is None or any(
        item in owned and (owned[item] == role or item not in kept) for item, role in given_up.items()
    )


def _changed(
    current: CurrentAssignment[I, R],
    epoch: int,
    state: MemberState,
    assigned: Mapping[I, R],
    revoking: Mapping[I, R],
    rules: Rules[R],
) -> CurrentAssignment[I, R]:
    """The assignment with these changes; the same object if nothing is different."""
    assignment_epochs: dict[I, int] = {}
    for held in (assigned, revoking):
        for item, role in held.items():
            if role in rules.exclusive:
                kept = current.assigned.get(item) == role
                assignment_epochs[item] = current.assignment_epochs.get(item, epoch) if kept else epoch
    changed = CurrentAssignment(
        epoch,
        current.previous_epoch if epoch == current.epoch else current.epoch,
        state,
        assigned,
        revoking,
        assignment_epochs,
    )
    return current if changed == current else changed
