"""The groups that are placed: the grid that Kafka's own developers measure assignors on."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kohort.coordinator.placement import Group, Member, Placement, SubtopologyTasks, TaskId


@dataclass(frozen=True, order=True)
class Case:
    """A cell of the grid.

    Attributes:
        members: how many.
        per_process: members of each process.
        subtopologies: how many; every second one has state.
        partitions: tasks of each subtopology.
        standbys: copies of each stateful task.
        joining: the last member has just joined; the others have what the assignor gave them before. Otherwise nobody
            has anything.
        stores: stateful tasks have one to so many state stores, by subtopology in turn.
    """

    members: int
    per_process: int
    subtopologies: int
    partitions: int
    standbys: int
    joining: bool
    stores: int

    def group(self) -> Group:
        """The group of the case, in which nobody has anything yet."""
        return Group(
            subtopologies=tuple(
                SubtopologyTasks(
                    f"s{number:03}", self.partitions, number // 2 % self.stores + 1 if number % 2 == 0 else 0
                )
                for number in range(self.subtopologies)
            ),
            members=tuple(
                Member(f"m{number:04}", f"p{number // self.per_process:04}") for number in range(self.members)
            ),
            standbys=self.standbys,
        )


def grid(quick: bool, stores: int) -> Iterator[Case]:
    """All cases with so many state stores at most; or few, and small ones, for CI."""
    members = (100,) if quick else (100, 1000)
    sizes = ((10, 10),) if quick else tuple(itertools.product((10, 100), (10, 100)))
    for number, (subtopologies, partitions), standbys, per_process, joining in itertools.product(
        members, sizes, (0, 1) if quick else (0, 1, 2), (1, 50), (False, True)
    ):
        yield Case(number, per_process, subtopologies, partitions, standbys, joining, stores)


def without_last(group: Group) -> Group:
    """The group before its last member joined."""
    return replace(group, members=group.members[:-1])


def with_last(before: Group, group: Group) -> Group:
    """The group after its last member joined; the others have what they had before."""
    return replace(before, members=(*before.members, group.members[-1]))


def having(group: Group, placement: Placement) -> Group:
    """The group, in which members have what was placed."""
    active: defaultdict[str, set[TaskId]] = defaultdict(set)
    standby: defaultdict[str, set[TaskId]] = defaultdict(set)
    for task, owner in placement.active.items():
        active[owner].add(task)
    for task, owners in placement.standby.items():
        for owner in owners:
            standby[owner].add(task)
    members = [
        replace(member, active=frozenset(active[member.id]), standby=frozenset(standby[member.id]))
        for member in group.members
    ]
    return replace(group, members=tuple(members))
