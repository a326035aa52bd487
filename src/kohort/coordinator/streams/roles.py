"""What a member is to a task."""

from __future__ import annotations

import enum

__all__ = ["Role"]


class Role(enum.Enum):
    """How a member has a task; two members of one process never have the same task, whatever the role."""

    ACTIVE = "active"
    """It runs the task; one member of the group does."""
    STANDBY = "standby"
    """It keeps a copy of the task's state, in case who runs it dies."""
    WARMUP = "warm-up"
    """It restores the task's state, and is to run the task once that is done."""
