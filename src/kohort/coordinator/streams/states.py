"""The states of a streams group. They follow from what its records say; nobody sets them.

state         while
------------  -------------------------------------------------------------------------------------------------
Empty         it has no members
NotReady      topics of its topology are missing, or have the wrong number of partitions: nobody gets tasks
Assigning     something changed that the target doesn't know of yet
Reconciling   some member hasn't reached the target yet
Stable        all members have
Dead          it was removed
"""

from __future__ import annotations

import enum

__all__ = ["GroupState"]


class GroupState(enum.Enum):
    """State of a streams group, with the name that Kafka's tools show."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"
