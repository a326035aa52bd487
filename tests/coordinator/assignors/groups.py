"""Groups for tests of assignors: any small one, and some to read."""

from __future__ import annotations

from uuid import UUID

from hypothesis import strategies as st

from kohort.coordinator.assignors import Assignment, GroupSpec, MemberSpec, TopicIdPartition

TOPICS = [UUID(int=number) for number in range(1, 5)]


def at(topic: int, *partitions: int) -> frozenset[TopicIdPartition]:
    """Partitions of the topic with that number, from 1."""
    return frozenset(TopicIdPartition(UUID(int=topic), partition) for partition in partitions)


@st.composite
def groups(draw: st.DrawFn, *, alike: bool, sharing: bool = False, members: int = 6, partitions: int = 9) -> GroupSpec:
    """Groups of up to so many members and partitions a topic, with topics that are gone and claims that make no sense.

    `sharing`: of share groups, in which several members may have a partition, and not all may be assigned.
    """
    partitions_of = draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(0, partitions)))
    subscriptions = st.frozensets(st.sampled_from(TOPICS))
    common = draw(subscriptions)
    claims = st.frozensets(st.builds(TopicIdPartition, st.sampled_from(TOPICS), st.integers(0, partitions)), max_size=8)
    taken: set[TopicIdPartition] = set()
    specs = {}
    for name in draw(st.lists(st.integers(0, 9), max_size=members, unique=True)):
        assigned = draw(claims) - (frozenset() if sharing else taken)
        taken |= assigned
        instance_id = draw(st.none() | st.just(f"i{9 - name}"))
        specs[f"m{name}"] = MemberSpec(common if alike else draw(subscriptions), assigned, instance_id, draw(st.none()))
    assignable = (
        {topic: draw(st.frozensets(st.integers(0, partitions))) for topic in partitions_of} if sharing else None
    )
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
