"""The interface of assignors, by which the leader of a classic group assigns partitions to members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from kohort.client.types import TopicPartition

__all__ = ["Assignment", "Assignor", "Member", "all_partitions", "in_order"]

Assignment = dict[str, list[TopicPartition]]
"""Partitions by member id, of all members."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member as the leader sees it.

    Attributes:
        topics: what it subscribes to.
        instance_id: name of a static member.
        owned: what it says it has (cooperative members, which don't give up what they have before they join).
        generation: the one in which `owned` was given; -1 if it doesn't say.
        user_data: what its assignor sends to the leader's.
        rack: where it runs; None if it doesn't say.
    """

    topics: frozenset[str]
    instance_id: str | None = None
    owned: frozenset[TopicPartition] = frozenset()
    generation: int = -1
    user_data: bytes | None = None
    rack: str | None = None


class Assignor(Protocol):
    """An assignor; all members of a group know it by its name."""

    name: ClassVar[str]
    cooperative: ClassVar[bool]
    """Whether members may keep what they have while they join again (KIP-429)."""

    def user_data(self, previous: frozenset[TopicPartition] | None, generation: int) -> bytes | None:
        """Returns what a member sends to the leader's assignor about its last assignment (None: it never had one)."""

    def assign(self, members: Mapping[str, Member], partitions: Mapping[str, int]) -> Assignment:
        """Returns the assignment.

        Args:
            members: by member id.
            partitions: number of partitions by topic, without topics that don't exist.
        """


def in_order(members: Mapping[str, Member], among: Iterable[str] | None = None) -> list[str]:
    """Returns member ids as Kafka's assignors sort them: static members by their names, then the others by id.

    So static members keep their order in every generation, though their ids change.
    """

    def key(member_id: str) -> tuple[bool, str]:
        instance = members[member_id].instance_id
        return (instance is None, member_id if instance is None else instance)

    return sorted(members if among is None else among, key=key)


def all_partitions(members: Mapping[str, Member], partitions: Mapping[str, int]) -> list[TopicPartition]:
    """Returns the partitions of all topics that any member subscribes to, sorted."""
    topics = frozenset[str]().union(*(member.topics for member in members.values()))
    return [TopicPartition(topic, number) for topic in sorted(topics) for number in range(partitions.get(topic, 0))]
