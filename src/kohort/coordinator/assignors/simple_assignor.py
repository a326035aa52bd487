"""The assignor `simple` of share groups, in which several members may have the same partition."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence

from kohort.coordinator.assignors.model import Assignment, GroupSpec
from kohort.protocol.topic_partition import TopicIdPartition

__all__ = ["simple"]


def simple(group: GroupSpec) -> Assignment:
    """Spreads partitions over members, and members over partitions: all partitions have a member, and all members one.

    Where there are more members than partitions, each partition is shared by as many as it takes for everybody to have
    one: members / partitions, rounded up. Members' numbers of partitions differ by one at most, but where what they had
    stands in the way: a member that lacks one can't take one that it has already. Little is moved. Racks make no
    difference.

    Where all members subscribe to the same topics, all partitions are shared out in one go. Otherwise each topic is
    shared out among its subscribers by itself.
    O(subscriptions × log members + partitions × log partitions + assignments).
    """
    targets: dict[str, set[TopicIdPartition]] = {member_id: set() for member_id in sorted(group.members)}
    topics = group.subscribed()
    for pool in [topics] if group.homogeneous else [[topic_id] for topic_id in topics]:
        partitions = [TopicIdPartition(topic_id, each) for topic_id in pool for each in group.partitions(topic_id)]
        subscribers = [member_id for member_id in targets if group.members[member_id].topics.issuperset(pool)]
        if partitions and subscribers:
            _share_out(partitions, subscribers, group, targets)
    return {member_id: frozenset(target) for member_id, target in targets.items()}


def _share_out(
    partitions: Sequence[TopicIdPartition],
    members: Sequence[str],
    group: GroupSpec,
    targets: dict[str, set[TopicIdPartition]],
) -> None:
    """Adds to the targets of members partitions that all of them subscribe to."""
    sharing = -(-len(members) // len(partitions))
    share, extras = divmod(sharing * len(partitions), len(members))
    pool = frozenset(partitions)
    kept = {member_id: set(group.members[member_id].assigned & pool) for member_id in members}
    # Who has more than a share may keep one more; what extras are left go to those that other topics gave least.
    by_claim = sorted(members, key=lambda member_id: (len(kept[member_id]) <= share, len(targets[member_id])))
    quotas = {member_id: share + (rank < extras) for rank, member_id in enumerate(by_claim)}
    sharers = Counter(partition for theirs in kept.values() for partition in theirs)

    def drop(member_id: str, surplus: Iterable[TopicIdPartition]) -> None:
        for partition in surplus:
            kept[member_id].remove(partition)
            sharers[partition] -= 1

    for member_id in members:
        # What most others have, too, is given up first.
        drop(member_id, sorted(kept[member_id], key=lambda each: (sharers[each], each))[quotas[member_id] :])
    for member_id in members:
        drop(member_id, [partition for partition in kept[member_id] if sharers[partition] > sharing])
    unfilled = deque(member_id for member_id in members if len(kept[member_id]) < quotas[member_id])
    for partition in partitions:
        for _ in range(len(unfilled)):
            if sharers[partition] >= sharing:
                break
            member_id = unfilled.popleft()
            if partition not in kept[member_id]:
                kept[member_id].add(partition)
                sharers[partition] += 1
            if len(kept[member_id]) < quotas[member_id]:
                unfilled.append(member_id)
    for member_id in members:
        targets[member_id] |= kept[member_id]
