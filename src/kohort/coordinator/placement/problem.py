"""A group in numbers, the form that solvers work on.

Stickiness begins here: what members had before is `previous_owner` and `previous_standbys`, what it costs to restore a
task elsewhere is `restore_cost`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

from kohort.coordinator.placement.model import Group, Member, Placement
from kohort.streams.tasks import TaskId

_MOST: Final = 2**62  # the largest cost, since solvers count in 64 bits


class Problem:
    """A group with its members, processes, subtopologies and tasks numbered in the order of their names.

    So results don't depend on the order in which a group lists them, and the last tie-break everywhere is a number.

    Attributes:
        members: ids of the members.
        process: the process of each member.
        members_of: the members of each process.
        names: ids of the subtopologies.
        partitions, stores: number of tasks, and of state stores a task, of each subtopology.
        first_task: the first task of each subtopology; its tasks have consecutive numbers.
        subtopology: the subtopology of each task.
        full_cost: what it costs to restore each task from nothing; 0 for stateless ones.
        previous_owner: for each task the member that had it active before, -1 if none had; the first, if several had.
        duplicate_owners: where several had a task active (a rebalance was lost): all of them, in ascending order.
        previous_standbys: for stateful tasks: the members that had them as standbys before, in ascending order.
        lags: for stateful tasks: what processes with a known lag have to restore; nothing, if the lag is acceptable.
        standbys: standbys that each stateful task gets: as many as asked, or as processes allow.
        racks: for each process its values of the rack tags, those of its first member; None for a tag it doesn't have.

    A cost is in records where anything is known about a task's changelog, and otherwise in state stores. It is highest
    without any state: where a copy is known to lag behind by more than the known end, or with no end known, the full
    cost is that lag.
    """

    def __init__(self, group: Group) -> None:
        members = sorted(group.members, key=lambda member: member.id)
        self.members = [member.id for member in members]
        named = sorted({member.process for member in members if member.process})
        processes = {name: number for number, name in enumerate(named)}
        self.members_of: list[list[int]] = [[] for _ in named]
        self.process: list[int] = []
        for number, member in enumerate(members):
            if member.process:
                process = processes[member.process]
            else:
                process = len(self.members_of)
                self.members_of.append([])
            self.process.append(process)
            self.members_of[process].append(number)

        subtopologies = sorted(group.subtopologies, key=lambda subtopology: subtopology.id)
        self.names = [subtopology.id for subtopology in subtopologies]
        self.partitions = [subtopology.partitions for subtopology in subtopologies]
        self.stores = [subtopology.state_stores for subtopology in subtopologies]
        self.first_task = list(accumulate(self.partitions, initial=0))[:-1]
        self.subtopology = [s for s, count in enumerate(self.partitions) for _ in range(count)]
        self._tasks = [TaskId(s.id, partition) for s in subtopologies for partition in range(s.partitions)]
        self._numbers = {task: number for number, task in enumerate(self._tasks)}
        self.tasks = len(self._tasks)
        self.standbys = min(group.standbys, max(0, len(self.members_of) - 1))
        self.racks = [
            tuple([members[numbers[0]].tags.get(tag) for tag in group.rack_tags]) for numbers in self.members_of
        ]

        self.full_cost = [self.stores[subtopology] for subtopology in self.subtopology]
        self.previous_owner = [-1] * self.tasks
        self.duplicate_owners: dict[int, list[int]] = {}
        self.previous_standbys: dict[int, list[int]] = {}
        self.lags: dict[int, dict[int, int]] = {}
        self._costs: dict[int, dict[int, int]] = {}
        self._read_previous(members)
        self._read_lags(group, processes)

    def previous_owners(self, task: int) -> Sequence[int]:
        """The members that had a task active before, in ascending order."""
        if (owner := self.previous_owner[task]) < 0:
            return ()
        return self.duplicate_owners.get(task) or (owner,)

    def costs_with_state(self, task: int) -> Mapping[int, int]:
        """What it costs to restore a task, by process with state of it, where that is less than the full cost."""
        costs = self._costs.get(task)
        if costs is None:
            full_cost = self.full_cost[task]
            costs = {}
            if full_cost:
                for holder in (*self.previous_owners(task), *self.previous_standbys.get(task, ())):
                    costs[self.process[holder]] = 0
                if task in self.lags:
                    costs.update(self.lags[task])
                    costs = {process: cost for process, cost in sorted(costs.items()) if cost < full_cost}
            self._costs[task] = costs
        return costs

    def restore_cost(self, task: int, member: int) -> int:
        """What it costs a member to run a task, or to keep a standby of it; at most `full_cost`."""
        if member == self.previous_owner[task] or member in self.duplicate_owners.get(task, ()):
            return 0
        return self.costs_with_state(task).get(self.process[member], self.full_cost[task])

    def placement(self, active: Sequence[int], standby: Mapping[int, Sequence[int]]) -> Placement:
        """The placement with the member of each task, and the members of its standbys."""
        ids, tasks = self.members, self._tasks
        return Placement(
            {task: ids[member] for task, member in zip(tasks, active, strict=True)},
            {tasks[task]: tuple([ids[member] for member in members]) for task, members in sorted(standby.items())},
        )

    def _read_previous(self, members: Sequence[Member]) -> None:
        numbers, full_cost, owner = self._numbers, self.full_cost, self.previous_owner
        for number, member in enumerate(members):
            for task in member.active:
                if (found := numbers.get(task)) is not None:
                    if owner[found] < 0:
                        owner[found] = number
                    else:
                        self.duplicate_owners.setdefault(found, [owner[found]]).append(number)
            for task in member.standby:
                if (found := numbers.get(task)) is not None and full_cost[found]:
                    self.previous_standbys.setdefault(found, []).append(number)

    def _read_lags(self, group: Group, processes: Mapping[str, int]) -> None:
        for task, end in group.ends.items():
            if (found := self._numbers.get(task)) is not None and self.full_cost[found]:
                self.full_cost[found] = min(end, _MOST)
        for (name, task), lag in group.lags.items():
            found, process = self._numbers.get(task), processes.get(name)
            if found is not None and process is not None and self.stores[self.subtopology[found]]:
                lag = min(lag, _MOST)
                self.lags.setdefault(found, {})[process] = lag if lag > group.acceptable_lag else 0
                self.full_cost[found] = max(self.full_cost[found], lag)
