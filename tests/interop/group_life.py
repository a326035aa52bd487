"""The life of a group of three: it grows, shrinks, crashes and comes back, while records flow."""

from __future__ import annotations

from collections.abc import Callable

from ..waiting import eventually
from .members import Feeder, MemberProcess, Members

ALL = list(range(6))
"""The partitions of its topic."""


def shared(*members: MemberProcess) -> bool:
    """Whether they have all partitions among them, an equal share each."""
    shares = [m.owns for m in members]
    return sorted(partition for share in shares for partition in share) == ALL and {len(s) for s in shares} == {
        len(ALL) // len(members)
    }


def live(bootstrap: str, topic: str, members: Members, start: Callable[[int], MemberProcess]) -> dict[int, int]:
    """All of it, to the last member's leaving; gives the ends of what was written, and by then read and committed.

    Args:
        bootstrap, topic: what is written to.
        members: all that are started.
        start: starts the member of slot 0, 1 or 2.
    """
    feeder = Feeder(bootstrap, topic, len(ALL))
    try:
        a = start(0)
        eventually(lambda: shared(a), within=60, what="one has all")
        b, c = start(1), start(2)
        eventually(lambda: shared(a, b, c), within=60, what="three share")
        b.leave()
        eventually(lambda: shared(a, c), within=60, what="two share after one has left")
        c.kill()
        eventually(lambda: shared(a), within=60, what="one has all after one has crashed")
        b, c = start(1), start(2)
        eventually(lambda: shared(a, b, c), within=60, what="three share again")
    finally:
        ends = feeder.stop()
    try:
        eventually(lambda: members.committed() == ends, within=60, what="all is read and committed")
    except AssertionError as error:
        raise AssertionError(members.told_of(ends)) from error
    for member in (a, b, c):
        member.leave()
    return ends
