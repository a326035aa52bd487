"""Why a task is where it is: what each other place would cost, by the objectives of a placement.

A task's other places are told one by one: it moves to another member alone, or for one of that member's tasks,
whichever costs less. A standby that is there already changes places with it. All other tasks stay: what a placement as
a whole could do better, only an assignor finds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

from kohort.coordinator.placement.metrics import Restore, RestoreCosts, process_of
from kohort.coordinator.placement.model import Group, Member, Placement
from kohort.coordinator.placement.outcome import present
from kohort.streams.tasks import TaskId

ALL: Final = "all"
STATEFUL: Final = "stateful"


class Cost(NamedTuple):
    """What another place costs beside the present one; less is better, and the first counts most.

    Attributes:
        unbalanced: tasks above or below fair shares, of both members: of subtopologies, of tasks with state, of all.
        spread: of the state stores of processes.
        restore: what is to be restored.
        moves: tasks that get another member.
        together: copies in a rack with another copy of their task that wouldn't have to be.
    """

    unbalanced: int
    spread: Fraction
    restore: Restore
    moves: int
    together: int

    @property
    def rank(self) -> tuple[int, Fraction, int, int, int]:
        """By which costs are compared: records where they are known, otherwise stores, as the assignors do."""
        return self.unbalanced, self.spread, self.restore.records + self.restore.stores, self.moves, self.together


NOTHING: Final = Cost(0, Fraction(0), Restore(), 0, 0)


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another place for a task.

    Attributes:
        member: its id.
        instead: the task that the present member gets for it; None if that gets none.
        standby: whether the member's process has a standby of it, which then is where the task is now.
        cost: beside the present.
    """

    member: str
    instead: TaskId | None
    standby: bool
    cost: Cost


@dataclass(frozen=True, slots=True)
class Share:
    """How much a member has of what is shared evenly.

    Attributes:
        what: a subtopology's id, `STATEFUL` or `ALL`.
        kind: whether `what` is one of these two.
        has: tasks of the member.
        tasks: of all members.
        least, most: the floor and the ceiling of the fair share.
    """

    what: str
    kind: bool
    has: int
    tasks: int
    least: int
    most: int


class Explanation:
    """A group as it is, and what other places of its tasks would cost.

    Args:
        group: with the tasks that its members have.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.placement: Placement = present(group).placement
        self.members = {member.id: member for member in group.members}
        self._costs = RestoreCosts(group)
        self._stores = {each.id: each.state_stores for each in group.subtopologies}
        self._tasks: Counter[tuple[bool, str]] = Counter()
        for each in group.subtopologies:
            self._tasks.update(dict.fromkeys(self._shared(each.id), each.partitions))
        self._has: dict[str, Counter[tuple[bool, str]]] = {name: Counter() for name in self.members}
        self._active: dict[str, list[TaskId]] = {name: [] for name in self.members}
        self._stores_of: Counter[Hashable] = Counter({process_of(member): 0 for member in group.members})
        for task, owner in sorted(self.placement.active.items()):
            self._active[owner].append(task)
            self._has[owner].update(self._shared(task.subtopology))
            self._stores_of[process_of(self.members[owner])] += self._stores[task.subtopology]
        self._sizes = Counter(process_of(member) for member in group.members)
        self._spreads: dict[tuple[Hashable, Hashable, int], Fraction] = {}
        self._values = {tag: {member.tags.get(tag) for member in group.members} for tag in group.rack_tags}

    def tasks(self) -> list[TaskId]:
        """All tasks of the group, in order."""
        parts = sorted(self.group.subtopologies, key=lambda each: each.id)
        return [TaskId(each.id, partition) for each in parts for partition in range(each.partitions)]

    def stores(self, task: TaskId) -> int:
        """State stores of a task."""
        return self._stores[task.subtopology]

    def restore(self, task: TaskId, member: str) -> Restore:
        """What a member would have to restore of a task; nothing of one that it has."""
        return self._costs.of(task, member)

    def shares(self, member: str, task: TaskId) -> list[Share]:
        """What a member has of the task's subtopology, of tasks with state if the task has any, and of all."""
        return [self._share(member, key) for key in self._shared(task.subtopology)]

    def process_stores(self, member: str) -> tuple[int, int, int]:
        """State stores of the active tasks of a member's process, and of the processes with the fewest and the most."""
        stores = self._stores_of.values()
        return self._stores_of[process_of(self.members[member])], min(stores), max(stores)

    def copies(self, task: TaskId) -> tuple[str, ...]:
        """The members that have a task: the active one, if there is one, and those of its standbys."""
        owner = self.placement.active.get(task)
        return (*(() if owner is None else (owner,)), *self.placement.standby.get(task, ()))

    def together(self, task: TaskId) -> dict[str, tuple[int, int]]:
        """By rack tag: copies of a task in a rack that another copy is in, and how many there have to be."""
        return {tag: self._shared_racks(tag, self.copies(task)) for tag in self.group.rack_tags}

    def alternatives(self, task: TaskId) -> list[Alternative]:
        """All other places of a task, the best ones first; those that are equal by the members' names."""
        found = list(self._alternatives(task))
        return sorted(found, key=lambda each: (each.cost.rank, each.member))

    def best(self, task: TaskId) -> Alternative | None:
        """The best other place of a task; None if there is none. It may be better than the present one."""
        return min(self._alternatives(task), key=lambda each: (each.cost.rank, each.member), default=None)

    @property
    def effort(self) -> int:
        """How many ways there are to put one task elsewhere."""
        return len(self.placement.active) + len(self.members)

    def _alternatives(self, task: TaskId) -> Iterator[Alternative]:
        owner = self.placement.active.get(task)
        for name in self.members:
            if name == owner:
                continue
            given: Sequence[TaskId | None] = [None] if owner is None else [None, *self._active[name]]
            costs = ((self._cost(task, owner, name, instead), instead) for instead in given)
            cost, instead = min(costs, key=lambda each: each[0].rank)
            yield Alternative(name, instead, self._standby_of(task, name) is not None, cost)

    def _cost(self, task: TaskId, owner: str | None, target: str, instead: TaskId | None) -> Cost:
        restore = self._costs.of(task, target)
        together = self._change_of_racks(task, owner, target)
        if instead is not None and owner is not None:
            restore += self._costs.of(instead, owner)
            together += self._change_of_racks(instead, target, owner)
        return Cost(
            self._change_of_balance(task, owner, target, instead),
            self._change_of_spread(task, owner, target, instead),
            restore,
            1 if instead is None else 2,
            together,
        )

    def _shared(self, subtopology: str) -> tuple[tuple[bool, str], ...]:
        """What is shared evenly, and that a task of the subtopology counts for."""
        own, every = (False, subtopology), (True, ALL)
        return (own, (True, STATEFUL), every) if self._stores[subtopology] else (own, every)

    def _share(self, member: str, key: tuple[bool, str]) -> Share:
        tasks, members = self._tasks[key], len(self.members)
        return Share(key[1], key[0], self._has[member][key], tasks, tasks // members, -(-tasks // members))

    def _change_of_balance(self, task: TaskId, owner: str | None, target: str, instead: TaskId | None) -> int:
        change = Counter(self._shared(task.subtopology))
        if instead is not None:
            change.subtract(self._shared(instead.subtopology))
        found = 0
        for key, more in change.items():
            if more:
                for member, by in ((target, more), *(() if owner is None else ((owner, -more),))):
                    share = self._share(member, key)
                    found += _off(share, share.has + by) - _off(share, share.has)
        return found

    def _change_of_spread(self, task: TaskId, owner: str | None, target: str, instead: TaskId | None) -> Fraction:
        more = self._stores[task.subtopology] - (0 if instead is None else self._stores[instead.subtopology])
        source = None if owner is None else process_of(self.members[owner])
        process = process_of(self.members[target])
        if not more or source == process:
            return Fraction(0)
        key = source, process, more
        if key not in self._spreads:
            changed = Counter(self._stores_of)
            changed[process] += more
            if source is not None:
                changed[source] -= more
            self._spreads[key] = self._spread(changed) - self._spread(self._stores_of)
        return self._spreads[key]

    def _spread(self, stores: Counter[Hashable]) -> Fraction:
        """The largest minus the smallest deviation of a process from its share, as the metrics have it."""
        total, members = sum(stores.values()), len(self.members)
        deviations = [count * members - total * self._sizes[process] for process, count in stores.items()]
        return Fraction(max(deviations) - min(deviations), members)

    def _standby_of(self, task: TaskId, member: str) -> str | None:
        """The member in that member's process that has a standby of the task."""
        process = process_of(self.members[member])
        standbys = self.placement.standby.get(task, ())
        return next((each for each in standbys if process_of(self.members[each]) == process), None)

    def _change_of_racks(self, task: TaskId, owner: str | None, target: str) -> int:
        standbys = self.placement.standby.get(task, ())
        if not standbys or not self.group.rack_tags:
            return 0
        replaced = self._standby_of(task, target)
        after = [target, *(owner if each == replaced and owner is not None else each for each in standbys)]
        found = 0
        for tag in self.group.rack_tags:
            before_shared, before_must = self._shared_racks(tag, self.copies(task))
            after_shared, after_must = self._shared_racks(tag, after)
            found += (after_shared - after_must) - (before_shared - before_must)
        return found

    def _shared_racks(self, tag: str, copies: Sequence[str]) -> tuple[int, int]:
        shared = len(copies) - len({self.members[name].tags.get(tag) for name in copies})
        return shared, max(0, len(copies) - len(self._values[tag]))


def _off(share: Share, has: int) -> int:
    return max(0, share.least - has, has - share.most)


def racks(member: Member, tags: Sequence[str]) -> str:
    """A member's values of rack tags: `zone a`; "" without any."""
    return ", ".join(f"{tag} {member.tags[tag]}" for tag in tags if tag in member.tags)
