"""What-if: a group with instances added or taken away, or with more standbys.

add=2            two instances, as large as those that are there
add=2x4          two instances of four members each
add=1,zone=eu-1a an instance with a tag
remove=m3        a member; or all members of a process
standbys=1       copies of each stateful task
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import count
from typing import Final, TypeAlias

from kohort.coordinator.placement.model import Group, Member, Placement
from kohort.streams.tasks import Role, TaskId

MOST_MEMBERS: Final = 100_000
MOST_STANDBYS: Final = 1_000

_ADD: Final = re.compile(r"([0-9]{1,9})(?:x([0-9]{1,9}))?((?:,[^=,]+=[^,]*)*)")


@dataclass(frozen=True, slots=True)
class Add:
    """More instances.

    Attributes:
        instances: how many processes.
        size: members of each; None for as many as most processes have that are there.
        tags: of all of them.
    """

    instances: int
    size: int | None
    tags: dict[str, str]

    def applied(self, group: Group) -> Group:
        """Adds processes without tasks, `new-1` and so on; several members of one are `new-1-1` …."""
        taken = {name for member in group.members for name in (member.id, member.process)}
        size = self.size if self.size is not None else _usual_size(group)
        if len(group.members) + self.instances * size > MOST_MEMBERS:
            raise ValueError(f"more than {MOST_MEMBERS:,} members can't be placed")
        names = (name for number in count(1) if (name := f"new-{number}") not in taken)
        added = []
        for _ in range(self.instances):
            process = next(names)
            ids = [process] if size == 1 else [f"{process}-{number}" for number in range(1, size + 1)]
            if clash := taken.intersection(ids):
                raise ValueError(f"a member is called {min(clash)} already")
            added += [Member(name, process, self.tags) for name in ids]
        return replace(group, members=(*group.members, *added))


@dataclass(frozen=True, slots=True)
class Remove:
    """A member that is gone, or a process with all of its members."""

    name: str

    def applied(self, group: Group) -> Group:
        """Removes the members, and the lags of processes that are gone."""
        gone = {member.id for member in group.members if member.id == self.name}
        gone = gone or {member.id for member in group.members if member.process == self.name}
        if not gone:
            raise ValueError(f"there is no member and no process {self.name!r}")
        members = tuple(member for member in group.members if member.id not in gone)
        processes = {member.process for member in members}
        lags = {(process, task): lag for (process, task), lag in group.lags.items() if process in processes}
        return replace(group, members=members, lags=lags)


@dataclass(frozen=True, slots=True)
class Standbys:
    """Another number of standbys."""

    number: int

    def applied(self, group: Group) -> Group:
        return replace(group, standbys=self.number)


Change: TypeAlias = Add | Remove | Standbys
"""`applied` returns the group after the change; ValueError: the group isn't one that can be changed so."""


def parse_change(text: str) -> Change:
    """Parses a change such as `add=2`.

    Raises:
        ValueError: it is none.
    """
    key, _, rest = text.partition("=")
    if key == "add" and (match := _ADD.fullmatch(rest)):
        size = int(match[2]) if match[2] is not None else None
        tags = dict(pair.split("=", 1) for pair in match[3].split(",")[1:])
        if int(match[1]) and size != 0:
            return Add(int(match[1]), size, tags)
    if key == "remove" and rest:
        return Remove(rest)
    if key == "standbys" and re.fullmatch("[0-9]{1,9}", rest) and int(rest) <= MOST_STANDBYS:
        return Standbys(int(rest))
    raise ValueError("add=2, add=2x4 (two of four members each), add=1,zone=a, remove=NAME or standbys=1 is needed")


def after_placement(group: Group, placement: Placement) -> Group:
    """Returns the group when all is placed and restored: members have their placed tasks, and nothing lags."""
    placed = placement.by_member()

    def tasks(member: Member, role: Role) -> frozenset[TaskId]:
        return frozenset(task for task, has in placed.get(member.id, {}).items() if has is role)

    members = [
        replace(member, active=tasks(member, Role.ACTIVE), standby=tasks(member, Role.STANDBY))
        for member in group.members
    ]
    return replace(group, members=tuple(members), lags={})


def _usual_size(group: Group) -> int:
    """Returns the number of members that most processes have; of several such numbers, the smallest."""
    sizes = Counter(Counter(member.process or (member.id,) for member in group.members).values())
    return max(sizes, key=lambda size: (sizes[size], -size), default=1)
