"""The assignor `uniform` for members that don't all subscribe to the same topics."""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from typing import Final
from uuid import UUID

from kohort.coordinator.assignors.model import Assignment, GroupSpec
from kohort.protocol.topic_partition import TopicIdPartition

__all__ = ["balanced"]

_PASSES: Final = 16
"""Passes over all topics that balance what members have.

Two are enough where the subscribers of a topic have all else in common as well; subscriptions that overlap need more,
each of which about halves what is out of balance.
"""


def balanced(group: GroupSpec) -> Assignment:
    """Assigns what nobody has to the subscriber with the least, then moves from those with most to those with least.

    Every member first keeps what it has of its topics. Topics come in the order of their partitions per subscriber, the
    most first, so that those which leave little choice have theirs placed before the others level out. In the end no
    member has two partitions more than another one that could take one of them, unless 16 passes weren't enough.
    O(16 × (subscriptions × log members + partitions × log partitions)).
    """
    return _Balancer(group).assign()


class _Balancer:
    """The work on one group; members are numbered in the order of their ids."""

    def __init__(self, group: GroupSpec) -> None:
        self._group = group
        self._ids = sorted(group.members)
        self._sizes = [0] * len(self._ids)
        self._subscribers: dict[UUID, list[int]] = {topic_id: [] for topic_id in group.subscribed()}
        for index, member_id in enumerate(self._ids):
            for topic_id in group.members[member_id].topics & self._subscribers.keys():
                self._subscribers[topic_id].append(index)
        self._owners: dict[UUID, dict[int, int | None]] = {
            topic_id: dict.fromkeys(group.partitions(topic_id)) for topic_id in self._subscribers
        }
        self._topics = sorted(
            self._subscribers,
            key=lambda topic_id: (
                -len(self._owners[topic_id]) / len(self._subscribers[topic_id]),
                len(self._subscribers[topic_id]),
                topic_id,
            ),
        )

    def assign(self) -> Assignment:
        self._keep()
        for topic_id in self._topics:
            self._assign_unassigned(topic_id)
        self._balance()
        targets: dict[str, list[TopicIdPartition]] = {member_id: [] for member_id in self._ids}
        for topic_id, owners in self._owners.items():
            for partition, owner in owners.items():
                if owner is not None:
                    targets[self._ids[owner]].append(TopicIdPartition(topic_id, partition))
        return {member_id: frozenset(target) for member_id, target in targets.items()}

    def _keep(self) -> None:
        for index, member_id in enumerate(self._ids):
            member = self._group.members[member_id]
            for topic_id, partition in member.assigned:
                if topic_id in member.topics and topic_id in self._owners:
                    owners = self._owners[topic_id]
                    if partition in owners and owners[partition] is None:
                        owners[partition] = index
                        self._sizes[index] += 1

    def _assign_unassigned(self, topic_id: UUID) -> None:
        owners = self._owners[topic_id]
        unassigned = [partition for partition, owner in owners.items() if owner is None]
        if not unassigned:
            return
        least = self._least_loaded(topic_id)
        for partition in unassigned:
            size, rank, member = least[0]
            heapreplace(least, (size + 1, rank, member))
            owners[partition] = member
            self._sizes[member] += 1

    def _balance(self) -> None:
        """Goes round and round the topics until nothing has moved since a topic's last turn."""
        topics = [topic_id for topic_id in self._topics if len(self._subscribers[topic_id]) > 1]
        unmoved = 0
        for topic_id in topics * _PASSES:
            unmoved = 0 if self._balance_topic(topic_id) else unmoved + 1
            if unmoved == len(topics):
                return

    def _balance_topic(self, topic_id: UUID) -> bool:
        """Moves partitions of a topic from subscribers with most to those with least; whether any was moved."""
        sizes = [self._sizes[member] for member in self._subscribers[topic_id]]
        if max(sizes) - min(sizes) <= 1:
            return False
        owners = self._owners[topic_id]
        owned: dict[int, list[int]] = {}
        for partition, owner in owners.items():
            if owner is not None:
                owned.setdefault(owner, []).append(partition)
        least = self._least_loaded(topic_id)
        # Those that have nothing of this topic can't give anything, however much they have. A member that was given
        # something never gives it on: then nobody would have two less than it.
        most = [(-size, -rank, member) for size, rank, member in least if member in owned]
        heapify(most)
        moved = False
        while most and -most[0][0] - least[0][0] > 1:
            load, rank, giver = most[0]
            partition = owned[giver].pop()
            if owned[giver]:
                heapreplace(most, (load + 1, rank, giver))
            else:
                heappop(most)
            size, rank, taker = least[0]
            heapreplace(least, (size + 1, rank, taker))
            owners[partition] = taker
            self._sizes[giver] -= 1
            self._sizes[taker] += 1
            moved = True
        return moved

    def _least_loaded(self, topic_id: UUID) -> list[tuple[int, int, int]]:
        """A heap of a topic's subscribers: (partitions, rank in the order of partitions and ids, member)."""
        members = sorted(self._subscribers[topic_id], key=self._sizes.__getitem__)
        return [(self._sizes[member], rank, member) for rank, member in enumerate(members)]
