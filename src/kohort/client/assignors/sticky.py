"""The sticky assignors: even, and as many partitions as possible stay."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import ClassVar

from kohort.client.assignors.assignor import Assignment, Member
from kohort.client.assignors.sticky_balance import balanced, retained_by
from kohort.client.assignors.user_data import decode_previous, encode_previous
from kohort.client.types import TopicPartition

__all__ = ["CooperativeStickyAssignor", "StickyAssignor"]


class StickyAssignor:
    """`sticky` (KIP-54): members revoke everything before they join; their user data has what they had."""

    name: ClassVar = "sticky"
    cooperative: ClassVar = False

    def user_data(self, previous: frozenset[TopicPartition] | None, generation: int) -> bytes | None:
        """Returns the last assignment, and its generation."""
        return None if previous is None else encode_previous(previous, generation)

    def assign(self, members: Mapping[str, Member], partitions: Mapping[str, int]) -> Assignment:
        """Returns the assignment."""
        claims = {member_id: decode_previous(member.user_data) for member_id, member in members.items()}
        return balanced(members, partitions, retained_by(members, partitions, claims))


class CooperativeStickyAssignor:
    """`cooperative-sticky` (KIP-429): members keep what they have while they join.

    So no partition is assigned to a member while another still has it: one that moves is assigned to nobody in this
    generation; its owner revokes it and joins again, and then it's free.
    """

    name: ClassVar = "cooperative-sticky"
    cooperative: ClassVar = True

    def user_data(self, previous: frozenset[TopicPartition] | None, generation: int) -> bytes:
        """Returns the generation, for leaders that don't find it in the subscription (before KIP-792)."""
        return struct.pack(">i", generation)

    def assign(self, members: Mapping[str, Member], partitions: Mapping[str, int]) -> Assignment:
        """Returns the assignment of this generation."""
        claims = {member_id: (member.owned, _generation(member)) for member_id, member in members.items()}
        retained = retained_by(members, partitions, claims)
        assignment = balanced(members, partitions, retained)
        # Partitions of a member, or of two (one from an older generation): only one that may keep it gets it now.
        claimed = {partition for member in members.values() for partition in member.owned}
        for member_id, theirs in assignment.items():
            others = claimed.difference(retained[member_id])
            assignment[member_id] = [partition for partition in theirs if partition not in others]
        return assignment


def _generation(member: Member) -> int:
    if member.generation < 0 and member.user_data is not None and len(member.user_data) >= 4:
        return int.from_bytes(member.user_data[:4], "big", signed=True)
    return member.generation
