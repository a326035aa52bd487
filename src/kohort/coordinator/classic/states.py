"""The states of a classic group, and every transition between them.

    from                 to                   when
    -------------------  -------------------  ---------------------------------------------------------------------
    Empty                PreparingRebalance   a first member joins
    PreparingRebalance   CompletingRebalance  all members have joined, or the rebalance timeout is over
    PreparingRebalance   Empty                the rebalance timeout is over, or a member has left, and nobody remains
    CompletingRebalance  Stable               the leader's assignment is in the log
    CompletingRebalance  PreparingRebalance   a member joins, changes, leaves, or doesn't sync in time
    Stable               PreparingRebalance   the same
    Stable               Stable               a static member is back, with its former self's assignment (KIP-345)
    any                  Dead                 the group is removed, or its shard is unloaded

Only Empty and Stable are in the log. A rebalance is in memory alone: after a restart, members have to join again. What
members' requests get:

    state                JoinGroup                  SyncGroup              Heartbeat              OffsetCommit
    -------------------  -------------------------  ---------------------  ---------------------  ---------------------
    Empty                UNKNOWN_MEMBER_ID          UNKNOWN_MEMBER_ID      UNKNOWN_MEMBER_ID      UNKNOWN_MEMBER_ID
    PreparingRebalance   waits for the others       REBALANCE_IN_PROGRESS  REBALANCE_IN_PROGRESS  accepted
    CompletingRebalance  this generation; a         waits for the leader   NONE                   REBALANCE_IN_PROGRESS
                         rebalance if it changed
    Stable               the same; also rebalances  its assignment         NONE                   accepted
                         if the leader sent it
"""

from __future__ import annotations

import enum
from typing import Final


class GroupState(enum.Enum):
    """State of a classic group, with the name that Kafka's tools show."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_E, _P, _C, _S, _D = GroupState

TRANSITIONS: Final[dict[GroupState, frozenset[GroupState]]] = {
    _E: frozenset({_P, _D}),
    _P: frozenset({_E, _C, _D}),
    _C: frozenset({_P, _S, _D}),
    _S: frozenset({_P, _S, _D}),
    _D: frozenset(),
}
"""The transitions of a live group. Replaying a log at start-up goes from any state to Empty, Stable or Dead."""
