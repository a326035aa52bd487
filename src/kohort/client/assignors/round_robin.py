"""The round robin assignor: all partitions of all topics are dealt to the members in turn."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import ClassVar

from kohort.client.assignors.assignor import Assignment, Member, all_partitions, in_order
from kohort.client.types import TopicPartition

__all__ = ["RoundRobinAssignor"]


class RoundRobinAssignor:
    """`roundrobin`: even in total if all members subscribe to the same topics; else non-subscribers are skipped."""

    name: ClassVar = "roundrobin"
    cooperative: ClassVar = False

    def user_data(self, previous: frozenset[TopicPartition] | None, generation: int) -> None:
        """Returns nothing: it needs none."""

    def assign(self, members: Mapping[str, Member], partitions: Mapping[str, int]) -> Assignment:
        """Returns the assignment."""
        assignment: Assignment = {member_id: [] for member_id in members}
        turns = cycle(in_order(members))
        for partition in all_partitions(members, partitions):
            # Somebody subscribes to the topic, or it wouldn't be there.
            taker = next(member_id for member_id in turns if partition.topic in members[member_id].topics)
            assignment[taker].append(partition)
        return assignment
