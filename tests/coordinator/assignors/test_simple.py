from __future__ import annotations

from collections import Counter
from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.coordinator.assignors import ASSIGNORS, GroupSpec, MemberSpec
from tests.coordinator.assignors.groups import TOPICS, after, assignable, at, groups

simple = ASSIGNORS["simple"]

any_group = st.booleans().flatmap(lambda alike: groups(alike=alike, sharing=True, members=9, partitions=5))


@settings(max_examples=200, deadline=None)
@given(any_group)
def test_every_partition_and_every_member_has_something(group: GroupSpec) -> None:
    targets = simple(group)
    assert targets.keys() == group.members.keys()
    assert frozenset(chain(*targets.values())) == assignable(group)
    for member_id, theirs in targets.items():
        assert theirs <= assignable(group, member_id)
        assert theirs or not assignable(group, member_id)


@settings(max_examples=200, deadline=None)
@given(groups(alike=True, sharing=True, members=9, partitions=5))
def test_partitions_are_shared_by_as_few_as_it_takes(group: GroupSpec) -> None:
    partitions = assignable(group)
    targets = simple(group)
    sharers = Counter(chain(*targets.values()))
    if partitions and group.members:
        sharing = -(-len(group.members) // len(partitions))
        assert max(sharers.values()) <= sharing
        assert max(map(len, targets.values())) <= -(-sharing * len(partitions) // len(group.members))


@settings(max_examples=150, deadline=None)
@given(any_group)
def test_assigned_again_nobody_loses_anything(group: GroupSpec) -> None:
    targets = simple(group)
    again = simple(after(group, targets))
    assert all(theirs <= again[member_id] for member_id, theirs in targets.items())


def test_members_share_partitions_where_there_are_more_of_them() -> None:
    members = {name: MemberSpec(frozenset(TOPICS[:1])) for name in "abcd"}
    targets = simple(GroupSpec(members, {TOPICS[0]: 2}))
    assert sorted(map(sorted, targets.values())) == [sorted(at(1, 0))] * 2 + [sorted(at(1, 1))] * 2


def test_extras_of_several_topics_go_to_different_members() -> None:
    both = frozenset(TOPICS[:2])
    members = {"a": MemberSpec(both), "b": MemberSpec(both), "c": MemberSpec(both | {TOPICS[2]})}
    targets = simple(GroupSpec(members, {TOPICS[0]: 4, TOPICS[1]: 4, TOPICS[2]: 1}))
    assert sorted(map(len, targets.values())) == [3, 3, 3]


def test_only_partitions_whose_state_is_initialized() -> None:
    members = {"a": MemberSpec(frozenset(TOPICS[:2]), at(1, 0, 1))}
    group = GroupSpec(members, {TOPICS[0]: 3, TOPICS[1]: 3}, {TOPICS[0]: frozenset({1, 2, 9})})
    assert simple(group) == {"a": at(1, 1, 2)}
