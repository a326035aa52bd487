"""Assignors of groups whose partitions the broker assigns (KIP-848, KIP-932).

A library of its own: it knows topic ids and partitions, and nothing of coordinators, brokers or the wire.

    uniform_assignor      even and sticky; for members with different subscriptions: uneven_subscriptions
    range_assignor        ranges of each topic, co-partitioned where members and topics are alike
    simple_assignor       share groups: several members may have a partition
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.coordinator.assignors.model import Assignment, Assignor, GroupSpec, MemberSpec
from kohort.coordinator.assignors.range_assignor import range_assignor
from kohort.coordinator.assignors.simple_assignor import simple
from kohort.coordinator.assignors.uniform_assignor import uniform
from kohort.protocol.topic_partition import TopicIdPartition

__all__ = [
    "ASSIGNORS",
    "CONSUMER_ASSIGNORS",
    "SHARE_ASSIGNORS",
    "Assignment",
    "Assignor",
    "GroupSpec",
    "MemberSpec",
    "TopicIdPartition",
]

CONSUMER_ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": uniform, "range": range_assignor}
"""Those of consumer groups, by the names that members ask for; the first is the default."""

SHARE_ASSIGNORS: Final[Mapping[str, Assignor]] = {"simple": simple}
"""Those of share groups."""

ASSIGNORS: Final[Mapping[str, Assignor]] = {**CONSUMER_ASSIGNORS, **SHARE_ASSIGNORS}
"""All of them, by name."""
