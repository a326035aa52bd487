"""Versions of subscriptions and assignments while members of several releases are in a group (KIP-268).

Both messages have the same versions. A member writes its newest one when it joins the first time. What it writes next
follows from the answer of the leader:

    who is older       the leader's answer                                  the member
    -----------------  ---------------------------------------------------  -----------------------------------------
    the leader         error SUBSCRIPTION_TOO_NEW in the leader's version   keeps its tasks, and joins again with that
    another member     tasks, in that member's version                      goes on with the version that it wrote
    nobody any more    tasks; the common version is newer than the          joins again with the common version
                       member's

So members join at most twice more than they would, and nobody stops. One that stays too new though it has heard such a
leader counts as unreadable. A static member that comes back without a rebalance gets what an earlier leader wrote, and
the group goes on in that version until the next rebalance.
"""

from __future__ import annotations

import enum
from typing import Final

LATEST: Final = 3
"""The newest version that this release knows."""

FIRST: Final = 1
"""The oldest version."""

WITH_OFFSETS: Final = 3
"""The first version with offsets, warm-ups and all else that isn't tasks."""

PREFIX: Final = 2
"""Bytes before either message: its version."""


class ErrorCode(enum.IntEnum):
    """Why a leader gives a member no tasks."""

    NONE = 0
    SUBSCRIPTION_TOO_NEW = 1
    """The leader is older than the member, which is to join again in the leader's version, and keeps its tasks."""
    SUBSCRIPTION_UNREADABLE = 2
    """The leader can't make sense of what the member wrote. It gets no tasks."""


def version_to_join_with(written: int, assigned: int, supported: int, common: int, latest: int = LATEST) -> int | None:
    """Returns the version in which a member is to join again at once; None if it needn't.

    Args:
        written: the version in which it wrote its subscription.
        assigned: the version of its assignment.
        supported: the leader's newest version.
        common: the newest version that all members of the group know.
        latest: the newest version that the member knows.
    """
    if assigned < written and supported < written:
        return max(supported, FIRST)
    if written < min(common, latest):
        return min(common, latest)
    return None
