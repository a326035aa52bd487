"""The assignor `range`: of each topic, each subscriber gets partitions in a row."""

from __future__ import annotations

from uuid import UUID

from kohort.coordinator.assignors.model import Assignment, GroupSpec
from kohort.protocol.topic_partition import TopicIdPartition

__all__ = ["range_assignor"]


def range_assignor(group: GroupSpec) -> Assignment:
    """Gives each subscriber of a topic a range of its partitions; the first ones get one more where it isn't even.

    Members come in the same order for every topic, static ones first by instance id, the others by member id. So topics
    with the same subscribers and as many partitions are co-partitioned: who has partition 3 of one has it of the other.
    And a static member that comes back under another member id gets what it had. What members had makes no difference
    otherwise, nor do racks. O(members × log members + subscriptions + partitions).
    """
    members = sorted(
        group.members.items(), key=lambda each: (each[1].instance_id is None, each[1].instance_id or each[0])
    )
    subscribers: dict[UUID, list[str]] = {}
    for member_id, member in members:
        for topic_id in member.topics:
            subscribers.setdefault(topic_id, []).append(member_id)
    targets: dict[str, list[TopicIdPartition]] = {member_id: [] for member_id in group.members}
    for topic_id, ids in subscribers.items():
        partitions = list(group.partitions(topic_id))
        share, more = divmod(len(partitions), len(ids))
        start = 0
        for index, member_id in enumerate(ids):
            end = start + share + (index < more)
            targets[member_id] += [TopicIdPartition(topic_id, partition) for partition in partitions[start:end]]
            start = end
    return {member_id: frozenset(target) for member_id, target in targets.items()}
