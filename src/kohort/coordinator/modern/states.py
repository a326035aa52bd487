"""How far a member is on its way to the target, and why it moves.

from         to           when
-----------  -----------  -------------------------------------------------------------------------------------
Stable       Stable       a new target takes nothing away, and what it gives is free: the new epoch at once
Stable       Unrevoked    a new target takes items away: the member is told, and stays on its epoch
Stable       Unreleased   a new target gives items that others still hold: the new epoch, and the rest when free
Unrevoked    Stable       the member no longer has what was taken away, and gets all that it shall have
Unrevoked    Unrevoked    the same, but meanwhile the target takes away more: one epoch up, and told again
Unrevoked    Unreleased   the same, but others still hold what it shall have
Unreleased   Stable       the last item is free
Unreleased   Unreleased   some of the items are free
Unreleased   Unrevoked    a newer target takes items away
"""

from __future__ import annotations

import enum

__all__ = ["MemberState"]


class MemberState(enum.Enum):
    """State of a member. Records number the states differently in each kind of group."""

    STABLE = "Stable"
    UNREVOKED = "Unrevoked"
    UNRELEASED = "Unreleased"
