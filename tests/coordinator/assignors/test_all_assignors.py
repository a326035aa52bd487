from __future__ import annotations

from itertools import chain
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.coordinator.assignors import ASSIGNORS, CONSUMER_ASSIGNORS, GroupSpec, MemberSpec
from tests.coordinator.assignors.groups import after, assignable, groups

any_group = st.booleans().flatmap(lambda alike: groups(alike=alike))


@pytest.mark.parametrize("assignor", CONSUMER_ASSIGNORS)
@settings(max_examples=150, deadline=None)
@given(group=any_group)
def test_every_partition_goes_to_one_subscriber(assignor: str, group: GroupSpec) -> None:
    targets = ASSIGNORS[assignor](group)
    assert targets.keys() == group.members.keys()
    assert sorted(chain(*targets.values())) == sorted(assignable(group))
    assert all(theirs <= assignable(group, member_id) for member_id, theirs in targets.items())


@pytest.mark.parametrize("assignor", ASSIGNORS)
@settings(max_examples=60, deadline=None)
@given(group=any_group, data=st.data())
def test_order_and_racks_make_no_difference(assignor: str, group: GroupSpec, data: st.DataObject) -> None:
    shuffled = {
        member_id: MemberSpec(
            group.members[member_id].topics,
            group.members[member_id].assigned,
            group.members[member_id].instance_id,
            data.draw(st.sampled_from([None, "a", "b"])),
        )
        for member_id in data.draw(st.permutations(sorted(group.members)))
    }
    partitions_of = {topic: group.partitions_of[topic] for topic in sorted(group.partitions_of, reverse=True)}
    assert ASSIGNORS[assignor](GroupSpec(shuffled, partitions_of)) == ASSIGNORS[assignor](group)


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_group_without_members(assignor: str) -> None:
    assert ASSIGNORS[assignor](GroupSpec({}, {UUID(int=1): 3})) == {}


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_large_group_stays_as_it_is(assignor: str, alike: bool) -> None:
    topics = [UUID(int=number) for number in range(100)]
    members = {
        f"m{number}": MemberSpec(frozenset(topics if alike else topics[number % 7 :])) for number in range(1_000)
    }
    group = GroupSpec(members, dict.fromkeys(topics, 100))
    targets = ASSIGNORS[assignor](group)
    assert frozenset(chain(*targets.values())) == assignable(group)
    assert ASSIGNORS[assignor](after(group, targets)) == targets
