"""A group in numbers, the form that solvers work on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

from kohort.coordinator.placement.model import Group, Member, Placement
from kohort.streams.tasks import TaskId

__all__ = ["Problem"]

_MOST: Final = 2**62  # a cost; so that solvers, which count in 64 bits, can take any


class Problem:
    """A group with its members, processes, subtopologies and tasks numbered in the order of their names.

    So nothing that is made of the numbers depends on the order in which a group lists them.

    Attributes:
        members: ids of the members.
        process: the process of each member.
        rows: the members of each process.
        names: ids of the subtopologies.
        partitions, stores: number of tasks, and of state stores a task, of each subtopology.
        first: the first task of each subtopology; its tasks have consecutive numbers.
        subtopology: the subtopology of each task.
        whole: what it costs to restore each task from nothing; 0 for stateless ones.
        owner: for each task the member that had it active before, -1 if nobody had; the first, if several had.
        rivals: where several had a task active (a rebalance was lost): all of them, in ascending order.
        keepers: for stateful tasks that members had as standbys before: which ones, in ascending order.
        lags: for stateful tasks: what processes with a known lag have to restore; nothing, if the lag is acceptable.
        standbys: copies that each stateful task gets beside the active one: as many as asked, or as processes allow.
        racks: for each process its values of the rack tags, those of its first member; None for a tag it doesn't have.

    A cost is in records where anything is known about a task's changelog, and otherwise in state stores. Nobody has
    more to restore than who has nothing: where a copy is known to lag behind by more than the known end, or with no
    end known, the whole is taken to be that lag.
    """

    def __init__(self, group: Group) -> None:
        members = sorted(group.members, key=lambda member: member.id)
        self.members = [member.id for member in members]
        named = sorted({member.process for member in members if member.process})
        processes = {name: number for number, name in enumerate(named)}
        self.rows: list[list[int]] = [[] for _ in named]
        self.process: list[int] = []
        for number, member in enumerate(members):
            if member.process:
                process = processes[member.process]
            else:
                process = len(self.rows)
                self.rows.append([])
            self.process.append(process)
            self.rows[process].append(number)

        subtopologies = sorted(group.subtopologies, key=lambda subtopology: subtopology.id)
        self.names = [subtopology.id for subtopology in subtopologies]
        self.partitions = [subtopology.partitions for subtopology in subtopologies]
        self.stores = [subtopology.state_stores for subtopology in subtopologies]
        self.first = list(accumulate(self.partitions, initial=0))[:-1]
        self.subtopology = [s for s, count in enumerate(self.partitions) for _ in range(count)]
        self._tasks = [TaskId(s.id, partition) for s in subtopologies for partition in range(s.partitions)]
        self._numbers = {task: number for number, task in enumerate(self._tasks)}
        self.tasks = len(self._tasks)
        self.standbys = min(group.standbys, max(0, len(self.rows) - 1))
        self.racks = [tuple([members[rows[0]].tags.get(tag) for tag in group.rack_tags]) for rows in self.rows]

        self.whole = [self.stores[subtopology] for subtopology in self.subtopology]
        self.owner = [-1] * self.tasks
        self.rivals: dict[int, list[int]] = {}
        self.keepers: dict[int, list[int]] = {}
        self.lags: dict[int, dict[int, int]] = {}
        self._homes: dict[int, dict[int, int]] = {}
        self._note_holders(members)
        self._note_lags(group, processes)

    def owners(self, task: int) -> Sequence[int]:
        """The members that had a task active before, in ascending order."""
        if (owner := self.owner[task]) < 0:
            return ()
        return self.rivals.get(task) or (owner,)

    def homes(self, task: int) -> Mapping[int, int]:
        """What it costs to restore a task in processes with state of it, where that is less than from nothing."""
        homes = self._homes.get(task)
        if homes is None:
            whole = self.whole[task]
            costs: dict[int, int] = {}
            if whole:
                for holder in (*self.owners(task), *self.keepers.get(task, ())):
                    costs[self.process[holder]] = 0
                if task in self.lags:
                    costs.update(self.lags[task])
                    costs = {process: cost for process, cost in sorted(costs.items()) if cost < whole}
            homes = self._homes[task] = costs
        return homes

    def restore(self, task: int, member: int) -> int:
        """What it costs that a member runs a task, or keeps a copy of it; at most `whole`."""
        if member == self.owner[task] or member in self.rivals.get(task, ()):
            return 0
        return self.homes(task).get(self.process[member], self.whole[task])

    def placement(self, active: Sequence[int], standby: Mapping[int, Sequence[int]]) -> Placement:
        """The placement in which each task runs on that member, and has standbys on those."""
        ids, tasks = self.members, self._tasks
        return Placement(
            {task: ids[member] for task, member in zip(tasks, active, strict=True)},
            {tasks[task]: tuple([ids[member] for member in members]) for task, members in sorted(standby.items())},
        )

    def _note_holders(self, members: Sequence[Member]) -> None:
        numbers, whole, owner = self._numbers, self.whole, self.owner
        for number, member in enumerate(members):
            for task in member.active:
                if (found := numbers.get(task)) is not None:
                    if owner[found] < 0:
                        owner[found] = number
                    else:
                        self.rivals.setdefault(found, [owner[found]]).append(number)
            for task in member.standby:
                if (found := numbers.get(task)) is not None and whole[found]:
                    self.keepers.setdefault(found, []).append(number)

    def _note_lags(self, group: Group, processes: Mapping[str, int]) -> None:
        for task, end in group.ends.items():
            if (found := self._numbers.get(task)) is not None and self.whole[found]:
                self.whole[found] = min(end, _MOST)
        for (name, task), lag in group.lags.items():
            found, process = self._numbers.get(task), processes.get(name)
            if found is not None and process is not None and self.stores[self.subtopology[found]]:
                lag = min(lag, _MOST)
                self.lags.setdefault(found, {})[process] = lag if lag > group.acceptable_lag else 0
                self.whole[found] = max(self.whole[found], lag)
