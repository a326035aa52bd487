"""How often a group has rebalanced of late, as far as looks tell, in bounded memory."""

from __future__ import annotations

from typing import Final, NamedTuple

from kohort.client.administration.awaited_members import UNDER_WAY
from kohort.client.administration.group_types import GroupDescription

LATELY_S: Final = 600.0
"""Rebalances count for so long."""

_TOGETHER_S: Final = 15.0
"""Those of so long are kept as one number."""


class Seen(NamedTuple):
    """What a look at a group says of its rebalances.

    Attributes:
        epoch: the group's, which grows with each; None in classic groups.
        under_way: whether it rebalances now.
        members: the same number while the same members are in it.
    """

    epoch: int | None
    under_way: bool
    members: int


def seen(group: GroupDescription) -> Seen:
    """What a description says."""
    members = frozenset(member.instance_id or member.member_id for member in group.members)
    return Seen(group.epoch, group.state.casefold() in UNDER_WAY, hash(members))


def between(before: Seen, now: Seen) -> int:
    """The rebalances from one look to the next.

    Those of a classic group that begin and end meanwhile, with the same members, aren't seen, and of others that have
    other members afterwards, one is.
    """
    if before.epoch is not None and now.epoch is not None:
        return now.epoch - before.epoch if now.epoch >= before.epoch else 1  # it was deleted, and made anew
    return int(now.members != before.members or (now.under_way and not before.under_way))


class Rebalances:
    """Those of a group."""

    __slots__ = ("_counts", "_last")

    def __init__(self) -> None:
        self._last: Seen | None = None
        self._counts: tuple[tuple[float, int], ...] = ()

    def looked(self, at: float, now: Seen) -> int:
        """Takes a look; the rebalances of the last `LATELY_S`, as far as looks have seen them.

        Args:
            at: in seconds, by a clock that never goes back.
            now: what it says.
        """
        before, self._last = self._last, now
        if before is None:
            return 0
        if self._counts:
            self._counts = tuple(each for each in self._counts if each[0] > at - LATELY_S)
        if count := between(before, now):
            if self._counts and at - self._counts[-1][0] < _TOGETHER_S:
                began, others = self._counts[-1]
                self._counts = (*self._counts[:-1], (began, others + count))
            else:
                self._counts = (*self._counts, (at, count))
        return sum(count for _, count in self._counts)
