"""Assignors for classic groups, where a member assigns: names, bytes and rules are Java's and librdkafka's."""

from __future__ import annotations

from typing import Final

from kohort.client.assignors.assignor import Assignor, Member
from kohort.client.assignors.range_assignor import RangeAssignor
from kohort.client.assignors.round_robin import RoundRobinAssignor
from kohort.client.assignors.sticky import CooperativeStickyAssignor, StickyAssignor

__all__ = ["ASSIGNORS", "Assignor", "Member"]

ASSIGNORS: Final[dict[str, Assignor]] = {
    assignor.name: assignor
    for assignor in (RangeAssignor(), RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor())
}
"""The assignors by name; they have no state."""
