from __future__ import annotations

from dataclasses import replace

import pytest

from kohort.coordinator.placement import ASSIGNORS, Assignor, Group, Member, Placement, SubtopologyTasks
from tests.coordinator.placement.changes import placed, without
from tests.coordinator.placement.invariants import check_invariants


@pytest.fixture(params=sorted(ASSIGNORS))
def assign(request: pytest.FixtureRequest) -> Assignor:
    return ASSIGNORS[request.param]


def racked(zones: str, standbys: int, partitions: int = 24, **tags: str) -> Group:
    """A member for each letter, which is its zone; and more tags, a letter for each member, too."""
    members = [
        Member(f"m{n:02}", f"p{n:02}", {"zone": zone, **{name: letters[n] for name, letters in tags.items()}})
        for n, zone in enumerate(zones)
    ]
    return Group((SubtopologyTasks("s", partitions, 1),), tuple(members), standbys, ("zone", *tags))


def values_of(group: Group, placement: Placement, tag: str = "zone") -> list[list[str]]:
    """For each task, the values of a tag where its copies are."""
    tags = {member.id: member.tags[tag] for member in group.members}
    return [[tags[placement.active[task]], *map(tags.__getitem__, names)] for task, names in placement.standby.items()]


@pytest.mark.parametrize(
    ("zones", "standbys"),
    [("ab", 1), ("aabb", 1), ("aaaaab", 1), ("abc", 2), ("aabbcc", 2), ("aaabcc", 2), ("aabbccdd", 3)],
)
def test_copies_are_all_in_different_zones_if_there_are_enough(assign: Assignor, zones: str, standbys: int) -> None:
    group = racked(zones, standbys)
    placement = assign(group)
    check_invariants(group, placement)
    assert all(len(set(each)) == standbys + 1 for each in values_of(group, placement))


def test_copies_are_in_all_zones_if_there_are_too_few(assign: Assignor) -> None:
    group = racked("aaabbb", 3)
    placement = assign(group)
    check_invariants(group, placement)
    assert all(sorted(each) == ["a", "a", "b", "b"] for each in values_of(group, placement))


def test_copies_differ_in_several_tags(assign: Assignor) -> None:
    group = racked("aabb", 1, cluster="xyxy")
    placement = assign(group)
    for tag in ("zone", "cluster"):
        assert all(len(set(each)) == 2 for each in values_of(group, placement, tag))


def test_a_tag_of_which_all_values_differ_costs_no_time(assign: Assignor) -> None:
    letters = "".join(chr(300 + n) for n in range(120))
    group = racked("abc" * 40, 2, 600, host=letters)
    placement = assign(group)
    assert all(len(set(each)) == 3 for each in values_of(group, placement))


def test_a_member_without_the_tag_is_somewhere_else(assign: Assignor) -> None:
    group = racked("ab", 1)
    group = replace(group, members=(replace(group.members[0], tags={}), group.members[1]))
    check_invariants(group, assign(group))


def test_standbys_leave_a_zone_that_the_active_one_came_to(assign: Assignor) -> None:
    group = without(placed(racked("aabbcc", 1), assign), ["m00"])
    placement = assign(group)
    check_invariants(group, placement)
    assert all(len(set(each)) == 2 for each in values_of(group, placement))


def test_standbys_are_even_where_zones_allow_it(assign: Assignor) -> None:
    group = racked("aabbcc", 2, 30)
    placement = assign(group)
    counts = [sum(member.id in names for names in placement.standby.values()) for member in group.members]
    assert counts == [10] * 6
