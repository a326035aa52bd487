"""The states of a share group. They follow from its records; nothing sets them.

state         while
------------  -------------------------------------------------------------------------------------------------
Empty         it has no members
Stable        it has members: none waits for another
Dead          it was removed
"""

from __future__ import annotations

import enum


class GroupState(enum.Enum):
    """State of a share group, with the name that Kafka's tools show."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"
