"""The sticky assignors' common part: as even as can be, and as much as possible stays where it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from kohort.client.assignors.assignor import Assignment, Member, all_partitions, in_order
from kohort.client.types import TopicPartition

__all__ = ["Claims", "Kept", "balanced", "kept_by"]

Claims = Mapping[str, tuple[frozenset[TopicPartition], int]]
"""What each member had, and in which generation (-1: it doesn't say)."""


Kept = dict[str, list[TopicPartition]]
"""What each member had, as far as it may keep it."""


def balanced(members: Mapping[str, Member], partitions: Mapping[str, int], kept: Kept) -> Assignment:
    """Give each partition to one of its subscribers.

    Nobody ends with two more than somebody who could take one of them; where all subscribe to the same, shares differ
    by one at most and as many partitions stay as then can.
    """
    order = in_order(members)
    every = all_partitions(members, partitions)
    if len({member.topics for member in members.values()}) == 1:
        return _even(order, every, kept)
    return _fair(order, members, every, kept)


def kept_by(members: Mapping[str, Member], partitions: Mapping[str, int], claims: Claims) -> Kept:
    """What members may keep: claims of the newest generation count; where two claim the same in one, neither's does."""
    every = set(all_partitions(members, partitions))
    claimants: dict[TopicPartition, list[tuple[int, str]]] = defaultdict(list)
    for member_id, (owned, generation) in claims.items():
        for partition in owned:
            if partition in every and partition.topic in members[member_id].topics:
                claimants[partition].append((generation, member_id))
    kept: Kept = {member_id: [] for member_id in members}
    for partition in sorted(claimants):
        newest = max(generation for generation, _ in claimants[partition])
        holders = [member_id for generation, member_id in claimants[partition] if generation == newest]
        if len(holders) == 1:
            kept[holders[0]].append(partition)
    return kept


def _even(order: list[str], every: list[TopicPartition], kept: Kept) -> Assignment:
    """Where all subscribe to the same: shares of the floor or the ceiling; those who have more get the ceilings."""
    share, more = divmod(len(every), len(order))
    ceilings = sorted(order, key=lambda member_id: -len(kept[member_id]))[:more]
    shares = {member_id: share + (member_id in ceilings) for member_id in order}
    assignment = {member_id: kept[member_id][: shares[member_id]] for member_id in order}
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
    kept: Kept,
) -> Assignment:
    """Where subscriptions differ: the free ones go to whoever has least, then partitions move while it evens out."""
    takers = {
        topic: [member_id for member_id in order if topic in members[member_id].topics]
        for topic in {partition.topic for partition in every}
    }
    assignment = {member_id: list(kept[member_id]) for member_id in order}
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
