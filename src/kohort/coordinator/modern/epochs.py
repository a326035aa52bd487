"""Member epochs with a meaning of their own, by Kafka's names, and the first epoch of a group."""

from __future__ import annotations

from typing import Final

JOIN_GROUP_MEMBER_EPOCH: Final = 0
"""The epoch that a member joins or rejoins with."""

LEAVE_GROUP_MEMBER_EPOCH: Final = -1
"""The epoch that a member leaves with."""

LEAVE_GROUP_STATIC_MEMBER_EPOCH: Final = -2
"""The epoch that a static member leaves with if it will be back, and the epoch it has until then."""

FIRST_EPOCH: Final = 1
"""The epoch of a group that nobody has joined yet, and of the empty target that it begins with."""
