"""The model of a group for assignors: its members, what they subscribe to and have, and the partitions of topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from kohort.protocol.topic_partition import TopicIdPartition

__all__ = ["Assignment", "Assignor", "GroupSpec", "MemberSpec"]


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member of a group, as assignors see it.

    Attributes:
        topics: ids of the topics it subscribes to, those of its regular expression included.
        assigned: its target so far, from which as little as possible is moved. Topics that it doesn't subscribe to any
            longer and partitions that don't exist may be among it.
        instance_id: its `group.instance.id`, of a static member.
        rack: its `client.rack`. No assignor here looks at it, as none of Kafka's does (4.3.1): racks only make a group
            assign anew when they change. It is here for assignors to come.
    """

    topics: frozenset[UUID]
    assigned: frozenset[TopicIdPartition] = frozenset()
    instance_id: str | None = None
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """The input of an assignor.

    Attributes:
        members: by member id; their order makes no difference.
        partitions_of: number of partitions of each topic that exists. A topic that isn't among them has none.
        assignable: of share groups, the partitions of each topic whose state is initialized, which alone are assigned.
            None: all.
    """

    members: Mapping[str, MemberSpec]
    partitions_of: Mapping[UUID, int]
    assignable: Mapping[UUID, frozenset[int]] | None = None

    @property
    def homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        return len({member.topics for member in self.members.values()}) <= 1

    def subscribed(self) -> list[UUID]:
        """The topics that exist and have a subscriber, in the order of their ids."""
        topics = frozenset[UUID]().union(*(member.topics for member in self.members.values()))
        return sorted(topics & self.partitions_of.keys())

    def partitions(self, topic_id: UUID) -> Iterable[int]:
        """The partitions of a topic that may be assigned, in order."""
        every = range(self.partitions_of.get(topic_id, 0))
        if self.assignable is None:
            return every
        allowed = self.assignable.get(topic_id, frozenset())
        return [partition for partition in every if partition in allowed]


Assignment = dict[str, frozenset[TopicIdPartition]]
"""The output of an assignor: the target of every member of the group, by member id."""

Assignor = Callable[[GroupSpec], Assignment]
"""Assigns a group's partitions; equal groups get equal assignments. Pure, and total: no group makes it raise."""
