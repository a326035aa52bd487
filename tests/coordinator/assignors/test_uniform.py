from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.coordinator.assignors import ASSIGNORS, GroupSpec, MemberSpec
from tests.coordinator.assignors.groups import TOPICS, after, assignable, at, groups, kept

uniform = ASSIGNORS["uniform"]


@settings(max_examples=150, deadline=None)
@given(st.booleans().flatmap(lambda alike: groups(alike=alike)))
def test_nobody_has_two_more_than_another_who_could_take_one(group: GroupSpec) -> None:
    targets = uniform(group)
    for theirs in targets.values():
        for partition in theirs:
            for other, member in group.members.items():
                assert partition.topic_id not in member.topics or len(theirs) - len(targets[other]) <= 1


def fewest_moves(group: GroupSpec) -> int:
    """How many partitions can stay at most where the numbers of partitions differ by one at most: all ways tried."""
    partitions = sorted(assignable(group))
    best = -1
    for owners in product(group.members, repeat=len(partitions)):
        counts = [owners.count(member_id) for member_id in group.members]
        if max(counts) - min(counts) <= 1:
            pairs = zip(partitions, owners, strict=True)
            best = max(best, sum(each in group.members[owner].assigned for each, owner in pairs))
    return best


@settings(max_examples=80, deadline=None)
@given(groups(alike=True, members=3, partitions=2).filter(lambda group: group.members and len(assignable(group)) <= 6))
def test_as_few_moves_as_even_numbers_allow(group: GroupSpec) -> None:
    targets = uniform(group)
    sizes = [len(theirs) for theirs in targets.values()]
    assert max(sizes) - min(sizes) <= 1
    assert kept(group, targets) == fewest_moves(group)


@settings(max_examples=100, deadline=None)
@given(st.booleans().flatmap(lambda alike: groups(alike=alike)))
def test_assigned_again_nothing_moves(group: GroupSpec) -> None:
    targets = uniform(group)
    assert uniform(after(group, targets)) == targets


def test_a_new_member_takes_its_share_and_nothing_else_moves() -> None:
    topics = frozenset(TOPICS[:1])
    members = {
        "a": MemberSpec(topics, at(1, 0, 1, 2)),
        "b": MemberSpec(topics, at(1, 3, 4, 5)),
        "c": MemberSpec(topics),
    }
    assert uniform(GroupSpec(members, {TOPICS[0]: 6})) == {"a": at(1, 0, 1), "b": at(1, 3, 4), "c": at(1, 2, 5)}


def test_those_with_little_choice_are_placed_first() -> None:
    members = {
        "a": MemberSpec(frozenset(TOPICS[:1])),
        "b": MemberSpec(frozenset(TOPICS[:2])),
        "c": MemberSpec(frozenset(TOPICS[:2])),
    }
    targets = uniform(GroupSpec(members, {TOPICS[0]: 4, TOPICS[1]: 5}))
    assert {member_id: len(theirs) for member_id, theirs in targets.items()} == {"a": 3, "b": 3, "c": 3}
    assert targets["a"] < at(1, 0, 1, 2, 3)


def test_a_partition_that_two_claim_stays_with_one_of_them() -> None:
    for topics in (frozenset(TOPICS[:1]), frozenset(TOPICS)):
        members = {"a": MemberSpec(topics, at(1, 0, 1)), "b": MemberSpec(frozenset(TOPICS[:1]), at(1, 0, 1))}
        targets = uniform(GroupSpec(members, {TOPICS[0]: 2}))
        assert targets["a"] | targets["b"] == at(1, 0, 1) and not targets["a"] & targets["b"]
