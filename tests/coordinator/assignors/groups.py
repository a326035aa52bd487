"""Groups for tests of assignors: any small one, and some to read."""

from __future__ import annotations

import functools
from typing import NamedTuple
from uuid import UUID

from hypothesis import strategies as st

from kohort.coordinator.assignors import Assignment, GroupSpec, MemberSpec, TopicIdPartition

TOPICS = [UUID(int=number) for number in range(1, 5)]
SUBSCRIPTIONS = st.frozensets(st.sampled_from(TOPICS))


class Parts(NamedTuple):
    """What groups up to a size are drawn from: to make a strategy takes longer than to draw from it."""

    names: st.SearchStrategy[list[int]]
    partitions_of: st.SearchStrategy[dict[UUID, int]]
    claims: st.SearchStrategy[frozenset[TopicIdPartition]]
    assignable: st.SearchStrategy[frozenset[int]]


@functools.cache
def parts(members: int, partitions: int) -> Parts:
    topic, number = st.sampled_from(TOPICS), st.integers(0, partitions)
    return Parts(
        st.lists(st.integers(0, 9), max_size=members, unique=True),
        st.dictionaries(topic, number),
        st.frozensets(st.builds(TopicIdPartition, topic, number), max_size=8),
        st.frozensets(number),
    )


def at(topic: int, *partitions: int) -> frozenset[TopicIdPartition]:
    """Partitions of the topic with that number, from 1."""
    return frozenset(TopicIdPartition(UUID(int=topic), partition) for partition in partitions)


@st.composite
def groups(draw: st.DrawFn, *, alike: bool, sharing: bool = False, members: int = 6, partitions: int = 9) -> GroupSpec:
    """Groups of up to so many members and partitions a topic, with topics that are gone and claims that make no sense.

    `sharing`: of share groups, in which several members may have a partition, and not all may be assigned.
    """
    of = parts(members, partitions)
    partitions_of, common = draw(of.partitions_of), draw(SUBSCRIPTIONS)
    taken: set[TopicIdPartition] = set()
    specs = {}
    for name in draw(of.names):
        assigned = draw(of.claims) - (frozenset() if sharing else taken)
        taken |= assigned
        instance_id = f"i{9 - name}" if draw(st.booleans()) else None
        specs[f"m{name}"] = MemberSpec(common if alike else draw(SUBSCRIPTIONS), assigned, instance_id, None)
    assignable = {topic: draw(of.assignable) for topic in partitions_of} if sharing else None
    return GroupSpec(specs, partitions_of, assignable)


def assignable(group: GroupSpec, member_id: str | None = None) -> frozenset[TopicIdPartition]:
    """The partitions that a member subscribes to, or, without one, that anybody does."""
    members = [group.members[member_id]] if member_id is not None else group.members.values()
    topics = frozenset[UUID]().union(*(member.topics for member in members))
    return frozenset(TopicIdPartition(topic, each) for topic in topics for each in group.partitions(topic))


def kept(group: GroupSpec, targets: Assignment) -> int:
    """How many partitions stay with whom they were."""
    return sum(len(member.assigned & targets[member_id]) for member_id, member in group.members.items())


def after(group: GroupSpec, targets: Assignment) -> GroupSpec:
    """The group when everybody has its target."""
    members = {
        member_id: MemberSpec(member.topics, targets[member_id], member.instance_id, member.rack)
        for member_id, member in group.members.items()
    }
    return GroupSpec(members, group.partitions_of, group.assignable)
