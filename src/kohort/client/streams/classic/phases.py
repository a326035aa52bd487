"""The phases of a rebalance, as a member of a classic group goes through them, on one screen.

They are beside the member's state (`kohort.client.streams.transitions`): a member that has tasks runs them through all
phases, and may be stable, reconciling or leaving meanwhile.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class Phase(enum.Enum):
    """What a member sends next."""

    PREPARING_REBALANCE = "JoinGroup, with all that it has; the response comes when all members have joined"
    LEADING = "nothing: its driver looks topics up, and the leader places the tasks"
    COMPLETING_REBALANCE = "SyncGroup, a leader's with all assignments; the response has its own"
    SETTLED = "Heartbeat, once in the interval"


class Step(enum.Enum):
    """What leads to another phase."""

    MEMBER_ID_REQUIRED = "the group gave it a member id, with which it is to join (KIP-394)"
    JOINED = "the group has a new generation"
    LEADS = "the group has a new generation, and this member is to place its tasks"
    PLACED = "the tasks are placed"
    ASSIGNED = "the leader's assignment came"
    REJOIN = "the group rebalances, or the member wants it to"


P, S = Phase, Step

TRANSITIONS: Final[Mapping[Phase, Mapping[Step, Phase]]] = {
    P.PREPARING_REBALANCE: {
        S.MEMBER_ID_REQUIRED: P.PREPARING_REBALANCE, S.JOINED: P.COMPLETING_REBALANCE, S.LEADS: P.LEADING,
    },
    P.LEADING: {S.PLACED: P.COMPLETING_REBALANCE},
    P.COMPLETING_REBALANCE: {S.ASSIGNED: P.SETTLED, S.REJOIN: P.PREPARING_REBALANCE},
    P.SETTLED: {S.REJOIN: P.PREPARING_REBALANCE},
}  # fmt: skip
"""What isn't here changes nothing. A member that is fenced begins again with PREPARING_REBALANCE, in whatever phase."""
