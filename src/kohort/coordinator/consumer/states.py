"""The states of a consumer group. They follow from its records; nothing sets them.

state         while
------------  --------------------------------------------------------------------
Empty         it has no members
Assigning     the target isn't up to date
Reconciling   some member isn't reconciled to the target yet
Stable        all members are reconciled
Dead          it was removed
"""

from __future__ import annotations

import enum


class GroupState(enum.Enum):
    """State of a consumer group, with the name that Kafka's tools show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"
