"""How a member gets from what it holds to what it shall hold, without anybody holding what somebody else still has."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from kohort.coordinator.modern.standing import Standing
from kohort.coordinator.modern.states import MemberState

__all__ = ["Conversion", "Rules", "reconcile"]

I = TypeVar("I")  # noqa: E741
R = TypeVar("R")


class Conversion(enum.Enum):
    """What becomes of an item that a member shall go on holding, in another role.

    AT_ONCE: it has the new role at once, and there is nothing to confirm.
    WHEN_FREE: it keeps the old role until the new one is free, and then has that.
    ON_CONFIRMATION: it has the new role at once, and others wait until it confirms that it gave up the old one.
    """

    AT_ONCE = enum.auto()
    WHEN_FREE = enum.auto()
    ON_CONFIRMATION = enum.auto()


@dataclass(frozen=True, slots=True)
class Rules(Generic[R]):
    """What varies from one kind of group to the next.

    Attributes:
        exclusive: roles in which only one member may hold an item; whoever gives it up has to confirm that it did.
        conversion: what becomes of an item whose role changes from the first to the second.
        waits: whether revocations have to be confirmed, and items free, before others get them.
    """

    exclusive: frozenset[R]
    conversion: Callable[[R, R], Conversion]
    waits: bool = True


def reconcile(
    standing: Standing[I, R],
    target: Mapping[I, R],
    target_epoch: int,
    owned: Mapping[I, R] | None,
    free: Callable[[I, R], bool],
    rules: Rules[R],
) -> Standing[I, R]:
    """The next standing of a member, or the same if it can't move.

    Args:
        standing: where it stands.
        target: what it shall hold.
        target_epoch: the epoch of that.
        owned: what it says it has; None if it doesn't say so, or if what it says may be old.
        free: whether no *other* member has an item in a way that keeps this one from having it in a role.
        rules: those of the kind of group.
    """
    if standing.state is MemberState.STABLE and standing.epoch == target_epoch:
        return standing
    if not rules.waits:
        return _moved(standing, target_epoch, MemberState.STABLE, dict(target), {}, rules)
    epoch = standing.epoch
    if standing.state is MemberState.UNREVOKED:
        if _still_has(owned, standing.revoking, standing.assigned):
            return standing
        epoch += 1

    kept: dict[I, R] = {}
    granted: dict[I, R] = {}
    promoted: dict[I, R] = {}  # granted ones, in their old role
    revoked: dict[I, R] = {}
    waiting = False
    for item, role in standing.assigned.items():
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
                granted[item] = wanted
                promoted[item] = role
            else:
                kept[item] = role
                waiting = True
    for item, wanted in target.items():
        if item not in standing.assigned:
            if free(item, wanted):
                granted[item] = wanted
            else:
                waiting = True

    if revoked and _still_has(owned, revoked, kept):
        return _moved(standing, epoch, MemberState.UNREVOKED, kept | promoted, revoked, rules)
    state = MemberState.UNRELEASED if waiting else MemberState.STABLE
    return _moved(standing, target_epoch, state, kept | granted, {}, rules)


def _still_has(owned: Mapping[I, R] | None, given_up: Mapping[I, R], kept: Mapping[I, R]) -> bool:
    """Whether a member has any of what it shall give up, for all that one knows.

    In whatever role, since it may not have heard yet of the latest; but what it keeps in another role it may have.
    """
    return owned is None or any(
        item in owned and (owned[item] == role or item not in kept) for item, role in given_up.items()
    )


def _moved(
    standing: Standing[I, R],
    epoch: int,
    state: MemberState,
    assigned: Mapping[I, R],
    revoking: Mapping[I, R],
    rules: Rules[R],
) -> Standing[I, R]:
    """The standing with these; itself if nothing is different."""
    since: dict[I, int] = {}
    for held in (assigned, revoking):
        for item, role in held.items():
            if role in rules.exclusive:
                kept = standing.assigned.get(item) == role
                since[item] = standing.since.get(item, epoch) if kept else epoch
    moved = Standing(
        epoch,
        standing.previous_epoch if epoch == standing.epoch else standing.epoch,
        state,
        assigned,
        revoking,
        since,
    )
    return standing if moved == standing else moved
