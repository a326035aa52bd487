"""Groups that don't come to rest, or don't come any farther: what a single look at them can't tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from kohort.cli.client.in_the_way import program_and_host
from kohort.cli.diagnosis.finding import NAMED, Finding, Level, some
from kohort.client.administration.awaited_members import UNDER_WAY, awaited, called, holding_up
from kohort.client.administration.group_types import GroupDescription, GroupMember, GroupType
from kohort.plurals import several

__all__ = ["movement_findings"]

_LONG_S: Final = 60
"""Who has watched for so long isn't told to watch for longer."""


def movement_findings(looks: Sequence[Mapping[str, GroupDescription]], seconds: float) -> Iterator[Finding]:
    """What groups have done from look to look.

    Args:
        looks: the groups that had members, at each look.
        seconds: from the first look to the last.
    """
    quiet = 0
    for name in dict.fromkeys(name for look in looks for name in look):
        seen = [look.get(name) for look in looks]
        moved = [(before, after) for before, after in pairwise(seen) if _has_moved(before, after)]
        if moved:
            yield _restless(name, moved, seconds)
        elif len(seen) > 1 and (last := seen[-1]) is not None and seen[0] is not None and _stands(seen[0], last):
            yield _stuck(last, seconds)
        else:
            quiet += 1
    if quiet and len(looks) > 1:
        longer = "" if seconds >= _LONG_S else "; kohort doctor --watch-groups 60 looks for longer"
        what = f"{several(quiet, 'group')} with members: nobody came or went within {seconds:g} s"
        yield Finding("cluster", Level.FINE, what + longer)


def _restless(
    name: str, moved: Sequence[tuple[GroupDescription | None, GroupDescription | None]], seconds: float
) -> Finding:
    """A group whose members or epoch have changed: once, as when a program starts, or again and again."""
    came = {program_and_host(each) for before, after in moved for each in _only_in(after, before)}
    went = {program_and_host(each) for before, after in moved for each in _only_in(before, after)}
    both = came & went
    last = next(group for pair in reversed(moved) for group in reversed(pair) if group is not None)
    # The epoch of a streams group rises, too, with each task whose copy has caught up.
    catches_up = last.type is GroupType.STREAMS and not came and not went
    again = bool(both) or (len(moved) > 1 and last.type is not GroupType.STREAMS)
    dids = ((both, "came and went"), (came - both, "came"), (went - both, "went"))
    who = [f"{some(sorted(these))} {did}" for these, did in dids if these]
    what = f"group {name} {'flaps' if again else 'rebalances'}: its members or its epoch have changed"
    times = f" {len(moved)} times" if len(moved) > 1 else ""
    remedies = [
        f"the log of broker {last.coordinator.node_id} has a line with the reason for each rebalance of it",
        "`it left`, and back within seconds again and again: busy for longer than max.poll.interval.ms; "
        "`session timeout`: killed or cut off; docs/tutorials/debugging-a-rebalance.md has the others",
    ]
    if seconds < _LONG_S:
        remedies.append("kohort doctor --watch-groups 60 looks for longer whether it goes on")
    return Finding(
        "cluster",
        Level.NOTE if catches_up else Level.WARNING,
        f"{what}{times} within {seconds:g} s" + (f": {', '.join(who)}" if who else ""),
        "Members come and go, as in a deployment, or all the time: then little is read." if again
        else "If that goes on, members come and go all the time, and little is read.",
        "\n".join(remedies),
    )  # fmt: skip


def _stuck(group: GroupDescription, seconds: float) -> Finding:
    """A group that rebalances, and hasn't come any farther."""
    members = called(group, holding_up(group))
    whom = f"{', '.join(members[:NAMED])} {'does' if len(members) == 1 else 'do'}" if members else "members do"
    return Finding(
        "cluster",
        Level.WARNING,
        f"group {group.group_id} is {group.state}, and hasn't moved for {seconds:g} s",
        "\n".join(awaited(group)) or "While it rebalances, its partitions aren't all read.",
        f"see what {whom} now, in their logs: records that take long, or a process that hangs. A process that "
        "is ended leaves at its session timeout, one that is busy is dropped at its max.poll.interval.ms",
    )


def _stands(before: GroupDescription, after: GroupDescription) -> bool:
    """Whether a group is in the same step of a rebalance as it was."""
    return after.state.lower() in UNDER_WAY and (after.state, after.members) == (before.state, before.members)


def _has_moved(before: GroupDescription | None, after: GroupDescription | None) -> bool:
    """Whether members or the epoch are others; a group that isn't described has no members, and an unknown epoch."""
    if before is None or after is None:
        return before is not after
    return (before.epoch, _ids(before)) != (after.epoch, _ids(after))


def _only_in(group: GroupDescription | None, other: GroupDescription | None) -> Iterator[GroupMember]:
    """The members that are in a group at one look, and not at the other."""
    if group is not None:
        there = set() if other is None else _ids(other)
        yield from (each for each in group.members if each.member_id not in there)


def _ids(group: GroupDescription) -> set[str]:
    return {member.member_id for member in group.members}
