"""The sticky assignors' balancing: as even as possible, and as many partitions as possible stay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from kohort.client.assignors.assignor import Assignment, Member, all_partitions, in_order
from kohort.client.types import TopicPartition

__all__ = ["Claims", "Retained", "balanced", "retained_by"]

Claims = Mapping[str, tuple[frozenset[TopicPartition], int]]
"""The partitions that each member had, and their generation (-1: unknown)."""


Retained = dict[str, list[TopicPartition]]
"""The partitions that each member may keep."""


def balanced(members: Mapping[str, Member], partitions: Mapping[str, int], retained: Retained) -> Assignment:
    """Assigns each partition to one of its subscribers.

    No member has two more than another that could take one of them. If all subscribe to the same topics, shares differ
    by one at most, and as many partitions stay as possible then.
    """
    order = in_order(members)
    every = all_partitions(members, partitions)
    if len({member.topics for member in members.values()}) == 1:
        return _even(order, every, retained)
    return _fair(order, members, every, retained)


def retained_by(members: Mapping[str, Member], partitions: Mapping[str, int], claims: Claims) -> Retained:
    """Returns what members may keep: the newest generation's claim counts; of two claims in it, neither does."""
    every = set(all_partitions(members, partitions))
    claimants: dict[TopicPartition, list[tuple[int, str]]] = defaultdict(list)
    for member_id, (owned, generation) in claims.items():
        for partition in owned:
            if partition in every and partition.topic in members[member_id].topics:
                claimants[partition].append((generation, member_id))
    retained: Retained = {member_id: [] for member_id in members}
    for partition in sorted(claimants):
        newest = max(generation for generation, _ in claimants[partition])
        holders = [member_id for generation, member_id in claimants[partition] if generation == newest]
        if len(holders) == 1:
            retained[holders[0]].append(partition)
    return retained


def _even(order: list[str], every: list[TopicPartition], retained: Retained) -> Assignment:
    """For equal subscriptions: shares are the floor or the ceiling; members that had more get the ceilings."""
    share, more = divmod(len(every), len(order))
    ceilings = sorted(order, key=lambda member_id: -len(retained[member_id]))[:more]
    shares = {member_id: share + (member_id in ceilings) for member_id in order}
    assignment = {member_id: retained[member_id][: shares[member_id]] for member_id in order}
    staying = {partition for theirs in assignment.values() for partition in theirs}
    free = [partition for partition in every if partition not in staying]
    # Dealt in turn, so that a topic's partitions spread over the members.
    takers = [member_id for member_id in order if len(assignment[member_id]) < shares[member_id]]
    while free:
        for member_id in takers:
            if free and len(assignment[member_id]) < shares[member_id]:
                assignment[member_id].append(free.pop(0))
        takers = [member_id for member_id in takers if len(assignment[member_id]) < shares[member_id]]
    return assignment


def _fair(
    order: list[str],
    members: Mapping[str, Member],
    every: list[TopicPartition],
    retained: Retained,
) -> Assignment:
    """For different subscriptions: free partitions go to the members with the fewest, then some move to even out."""
    takers = {
        topic: [member_id for member_id in order if topic in members[member_id].topics]
        for topic in {partition.topic for partition in every}
    }
    assignment = {member_id: list(retained[member_id]) for member_id in order}
    staying = {partition for theirs in assignment.values() for partition in theirs}
    load = {member_id: len(theirs) for member_id, theirs in assignment.items()}
    # Those that few can take come first.
    free = [partition for partition in every if partition not in staying]
    for partition in sorted(free, key=lambda partition: (len(takers[partition.topic]), partition)):
        least = min(takers[partition.topic], key=load.__getitem__)
        assignment[least].append(partition)
        load[least] += 1
    # Each move makes the sum of the squares of the loads smaller, so this ends.
    moved = True
    while moved:
        moved = False
        for member_id in sorted(order, key=lambda member_id: -load[member_id]):
            stuck: set[str] = set()  # topics whose takers all have as much: they only get more
            # What it didn't have before goes first: that costs nobody anything.
            for partition in sorted(assignment[member_id], key=lambda partition: (partition in staying, partition)):
                if partition.topic in stuck:
                    continue
                least = min(takers[partition.topic], key=load.__getitem__)
                if load[least] + 1 >= load[member_id]:
                    stuck.add(partition.topic)
                    continue
                assignment[member_id].remove(partition)
                assignment[least].append(partition)
                load[member_id] -= 1
                load[least] += 1
                moved = True
    return assignment
