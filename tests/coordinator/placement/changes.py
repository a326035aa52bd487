"""Groups after a placement, and after something happened to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from kohort.coordinator.placement import Group, Member, Placement, SubtopologyTasks, TaskId


def group(members: int, *subtopologies: tuple[int, int], per_process: int = 1, standbys: int = 0) -> Group:
    """Members m00, m01... in processes p00, p01... and subtopologies s0, s1... of so many partitions and stores."""
    return Group(
        tuple(SubtopologyTasks(f"s{n}", *each) for n, each in enumerate(subtopologies)),
        tuple(Member(f"m{n:02}", f"p{n // per_process:02}") for n in range(members)),
        standbys,
    )


def after(group: Group, placement: Placement) -> Group:
    """The group when members have what a placement gives them."""
    active: dict[str, set[TaskId]] = {member.id: set() for member in group.members}
    standby: dict[str, set[TaskId]] = {member.id: set() for member in group.members}
    for task, owner in placement.active.items():
        active[owner].add(task)
    for task, holders in placement.standby.items():
        for holder in holders:
            standby[holder].add(task)
    members = [
        replace(member, active=frozenset(active[member.id]), standby=frozenset(standby[member.id]))
        for member in group.members
    ]
    return replace(group, members=tuple(members))


def placed(group: Group, assign: Callable[[Group], Placement]) -> Group:
    return after(group, assign(group))


def joined(group: Group, *members: Member) -> Group:
    return replace(group, members=group.members + members)


def without(group: Group, gone: Iterable[str]) -> Group:
    """The group without some members or processes."""
    names = set(gone)
    left = [member for member in group.members if member.id not in names and member.process not in names]
    return replace(group, members=tuple(left))


def moved(group: Group, placement: Placement) -> set[TaskId]:
    """Tasks on members that didn't have them."""
    had = {member.id: member.active for member in group.members}
    return {task for task, owner in placement.active.items() if task not in had[owner]}
