"""The states of a member on its way to the target assignment; `reconciliation` moves it.

from         to           when
-----------  -----------  -------------------------------------------------------------------------------------
Stable       Stable       a new target takes nothing away, and what it gives is free: the new epoch at once
Stable       Unrevoked    a new target takes items away: the member has to revoke them, and stays on its epoch
Stable       Unreleased   a new target gives items that others still hold: the new epoch, and the rest when free
Unrevoked    Stable       the member confirmed the revocation, and gets all that the target gives it
Unrevoked    Unrevoked    the same, but the target takes away more by now: one epoch up, and more to revoke
Unrevoked    Unreleased   the same, but others still hold what the target gives it
Unreleased   Stable       the last item is free
Unreleased   Unreleased   some of the items are free
Unreleased   Unrevoked    a newer target takes items away
"""

from __future__ import annotations

import enum


class MemberState(enum.Enum):
    """State of a member. The records of each kind of group number the states differently."""

    STABLE = "Stable"
    UNREVOKED = "Unrevoked"
    UNRELEASED = "Unreleased"
