"""The assignor `uniform`: every member gets as many partitions as the others, and keeps what it has where it can."""

from __future__ import annotations

from itertools import islice

from kohort.coordinator.assignors.model import Assignment, GroupSpec
from kohort.coordinator.assignors.uneven_subscriptions import balanced
from kohort.protocol.topic_partition import TopicIdPartition

__all__ = ["uniform"]


def uniform(group: GroupSpec) -> Assignment:
    """Assigns evenly first, and with as few moves as that allows second; racks make no difference.

    Where all members subscribe to the same topics, their numbers of partitions differ by one at most, and no other
    assignment of that kind moves fewer. Otherwise see `uneven_subscriptions.balanced`.
    O(members × log members + partitions × log partitions).
    """
    return _even(group) if group.homogeneous else balanced(group)


def _even(group: GroupSpec) -> Assignment:
    """Cuts off what is above a member's quota, and gives it with what nobody has to those below theirs."""
    unassigned = {
        TopicIdPartition(topic_id, partition): None
        for topic_id in group.subscribed()
        for partition in group.partitions(topic_id)
    }
    if not unassigned:
        return dict.fromkeys(group.members, frozenset())
    share, extras = divmod(len(unassigned), len(group.members))
    kept: dict[str, list[TopicIdPartition]] = {}
    quotas: dict[str, int] = {}
    for left, member_id in zip(range(len(group.members), 0, -1), sorted(group.members), strict=True):
        had = sorted(partition for partition in group.members[member_id].assigned if partition in unassigned)
        # Who has more than a share may keep one more. The last ones have to take what extras nobody has kept.
        extra = extras > 0 and (len(had) > share or left <= extras)
        extras -= extra
        quotas[member_id] = share + extra
        kept[member_id] = had[: share + extra]
        for partition in kept[member_id]:
            del unassigned[partition]
    rest = iter(unassigned)
    return {
        member_id: frozenset(theirs).union(islice(rest, quotas[member_id] - len(theirs)))
        for member_id, theirs in kept.items()
    }
