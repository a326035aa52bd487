"""The range assignor: divides each topic into ranges, one for each of its subscribers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kohort.client.assignors.assignor import Assignment, Member, in_order
from kohort.client.types import TopicPartition

__all__ = ["RangeAssignor"]


class RangeAssignor:
    """`range`: partitions of the same number in different topics go to the same member, so that they can be joined.

    The first subscribers get one more if a topic's partitions can't be shared evenly. Racks are ignored.
    """

    name: ClassVar = "range"
    cooperative: ClassVar = False

    def user_data(self, previous: frozenset[TopicPartition] | None, generation: int) -> None:
        """Returns nothing: it needs none."""

    def assign(self, members: Mapping[str, Member], partitions: Mapping[str, int]) -> Assignment:
        """Returns the assignment."""
        assignment: Assignment = {member_id: [] for member_id in members}
        order = in_order(members)
        for topic in sorted(frozenset[str]().union(*(member.topics for member in members.values()))):
            takers = [member_id for member_id in order if topic in members[member_id].topics]
            share, more = divmod(partitions.get(topic, 0), len(takers))
            first = 0
            for index, member_id in enumerate(takers):
                end = first + share + (index < more)
                assignment[member_id] += [TopicPartition(topic, number) for number in range(first, end)]
                first = end
        return assignment
