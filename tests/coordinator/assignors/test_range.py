from __future__ import annotations

from hypothesis import given, settings

from kohort.coordinator.assignors import ASSIGNORS, GroupSpec, MemberSpec
from tests.coordinator.assignors.groups import TOPICS, at, groups

range_assignor = ASSIGNORS["range"]


@settings(max_examples=150, deadline=None)
@given(groups(alike=False))
def test_subscribers_get_ranges_of_even_lengths(group: GroupSpec) -> None:
    targets = range_assignor(group)
    for topic_id in group.subscribed():
        theirs = [
            sorted(partition for topic, partition in targets[member_id] if topic == topic_id)
            for member_id, member in group.members.items()
            if topic_id in member.topics
        ]
        assert all(
            partitions == list(range(*(partitions[0], partitions[-1] + 1))) for partitions in theirs if partitions
        )
        lengths = [len(partitions) for partitions in theirs]
        assert max(lengths) - min(lengths) <= 1


@settings(max_examples=100, deadline=None)
@given(groups(alike=True))
def test_topics_with_as_many_partitions_are_co_partitioned(group: GroupSpec) -> None:
    group = GroupSpec(group.members, dict.fromkeys(group.partitions_of, 7))
    for theirs in range_assignor(group).values():
        by_topic = [
            frozenset(number for topic, number in theirs if topic == topic_id) for topic_id in group.subscribed()
        ]
        assert len(set(by_topic)) <= 1


def test_a_static_member_that_comes_back_gets_what_it_had() -> None:
    topics = frozenset(TOPICS[:2])
    partitions_of = dict.fromkeys(topics, 5)

    def assign(first: str, second: str) -> list[object]:
        members = {first: MemberSpec(topics, instance_id="1"), second: MemberSpec(topics, instance_id="2")}
        targets = range_assignor(GroupSpec({**members, "c": MemberSpec(topics)}, partitions_of))
        return [targets[first], targets[second], targets["c"]]

    assert (
        assign("x", "y")
        == assign("y", "b")
        == [at(1, 0, 1) | at(2, 0, 1), at(1, 2, 3) | at(2, 2, 3), at(1, 4) | at(2, 4)]
    )


def test_members_beyond_the_partitions_get_nothing() -> None:
    members = {name: MemberSpec(frozenset(TOPICS[:1])) for name in "abc"}
    assert range_assignor(GroupSpec(members, {TOPICS[0]: 2})) == {"a": at(1, 0), "b": at(1, 1), "c": frozenset()}
