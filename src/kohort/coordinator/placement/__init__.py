"""Who gets which task: a model of a group, assignors that place its tasks, and what a placement is worth.

A library of its own: it knows task ids, and nothing of coordinators, brokers or the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kohort.coordinator.placement.checks import check
from kohort.coordinator.placement.model import Group, Member, Placement, SubtopologyTasks
from kohort.coordinator.placement.optimal import optimal
from kohort.coordinator.placement.sticky import sticky
from kohort.streams.tasks import TaskId

__all__ = [
    "ASSIGNORS",
    "Assignor",
    "Group",
    "Member",
    "Placement",
    "SubtopologyTasks",
    "TaskId",
    "check",
    "optimal",
    "sticky",
]

Assignor = Callable[[Group], Placement]
"""Places a group's tasks; equal groups get equal placements, whatever the order of their members."""

ASSIGNORS: Final[Mapping[str, Assignor]] = {"optimal": optimal, "sticky": sticky}
"""All assignors, by the names they have in configurations."""
