"""Metrics of a placement: balance, state stores, movement, standbys and racks.

They are the same for every assignor's placements.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from kohort.coordinator.placement.model import Group, Member, Placement
from kohort.streams.tasks import TaskId


@dataclass(frozen=True, slots=True)
class Balance:
    """How evenly active tasks are shared by members.

    Attributes:
        tasks: active tasks that were placed.
        members: number of members that share them.
        least: tasks of the member with the fewest.
        most: tasks of the member with the most.
    """

    tasks: int
    members: int
    least: int
    most: int

    @property
    def imbalance(self) -> int:
        """Tasks by which some member is below the floor or above the ceiling of its fair share; 0 is balanced."""
        if not self.members:
            return 0
        floor, rest = divmod(self.tasks, self.members)
        return max(floor - self.least, self.most - floor - (rest > 0))


@dataclass(frozen=True, slots=True)
class StateStores:
    """How evenly the state stores of active tasks are shared by processes (KIP-262).

    Attributes:
        least: state stores of the process with the fewest.
        most: state stores of the process with the most.
        spread: the largest minus the smallest deviation of a process from its share, which is in proportion to its
            members; with equally many members in each process that is `most` minus `least`.
    """

    least: int
    most: int
    spread: Fraction


@dataclass(frozen=True, slots=True)
class Restore:
    """State that has to be read from changelogs before tasks can run, or standbys are useful.

    Attributes:
        tasks: tasks with state to restore.
        records: records to restore, of those tasks whose lag or changelog end is known.
        stores: state stores to restore, of the other tasks.
    """

    tasks: int = 0
    records: int = 0
    stores: int = 0

    def __add__(self, other: Restore) -> Restore:
        return Restore(self.tasks + other.tasks, self.records + other.records, self.stores + other.stores)


@dataclass(frozen=True, slots=True)
class RackSpread:
    """How far standbys are from the active task and from each other, in the values of one rack tag.

    Attributes:
        apart: standbys in a value of their own.
        possible: how many of the standbys placed could have been, as there are values.
    """

    apart: int
    possible: int


@dataclass(frozen=True, slots=True)
class Metrics:
    """The result of `measure`.

    Attributes:
        subtopologies: the balance of each subtopology, in the group's order.
        stateful: the balance of all stateful tasks.
        unplaced: tasks without an active member.
        owned: active tasks that a member of the group had before.
        moved: those among them that another member got.
        moved_stateful: those among the moved that have state stores.
        restore: what active tasks have to restore, moved or new.
        standbys_wanted: standbys asked for.
        standbys_placed: standbys in a process that has no other copy of the task.
        standby_restore: what standbys have to restore.
        racks: for each rack tag, how standbys are spread over its values.
    """

    subtopologies: Mapping[str, Balance]
    stateful: Balance
    total: Balance
    state_stores: StateStores
    unplaced: int
    owned: int
    moved: int
    moved_stateful: int
    restore: Restore
    standbys_wanted: int
    standbys_placed: int
    standby_restore: Restore
    racks: Mapping[str, RackSpread]

    @property
    def imbalance(self) -> int:
        """The largest of all: 0 if every member has its fair share of each subtopology, of state, and in all."""
        balances = (*self.subtopologies.values(), self.stateful, self.total)
        return max(balance.imbalance for balance in balances)


class RestoreCosts:
    """What each member of a group would have to restore to run a task, or to keep a standby of it."""

    def __init__(self, group: Group) -> None:
        self._members = {member.id: member for member in group.members}
        self._stores = {subtopology.id: subtopology.state_stores for subtopology in group.subtopologies}
        self._copies: defaultdict[Hashable, set[TaskId]] = defaultdict(set)
        for member in group.members:
            self._copies[process_of(member)] |= member.active | member.standby
        self._acceptable = group.acceptable_lag
        self._lags: defaultdict[TaskId, dict[str, int]] = defaultdict(dict)
        processes = {member.process for member in group.members if member.process}
        for (process, task), lag in group.lags.items():
            if process in processes:
                self._lags[task][process] = lag
        self._changelogs = dict(group.ends)
        for task, lags in self._lags.items():
            if longest := max(lags.values()):
                self._changelogs[task] = max(longest, self._changelogs.get(task, 0))

    def of(self, task: TaskId, member_id: str) -> Restore:
        """What the member has to restore of a task; nothing if it had it active, or if its process has caught up.

        A known lag counts as it is, unless it is acceptable. Otherwise a process that had the task before has its
        state, and any other restores the whole changelog, which is taken to be at least as long as the largest known
        lag.
        """
        stores = self._stores.get(task.subtopology, 0)
        member = self._members[member_id]
        if not stores or task in member.active:
            return Restore()
        lag = self._lags.get(task, {}).get(member.process)
        if lag is not None:
            behind = lag > self._acceptable
            return Restore(1, lag, 0) if behind else Restore()
        if task in self._copies[process_of(member)]:
            return Restore()
        end = self._changelogs.get(task)
        if end is None:
            return Restore(1, 0, stores)
        return Restore(1, end, 0) if end else Restore()


def process_of(member: Member) -> Hashable:
    """The process of a member; without a name, one of its own."""
    return member.process or (member.id,)


def measure(group: Group, placement: Placement) -> Metrics:
    """The metrics of a placement of a group's tasks.

    Raises:
        KeyError: the placement has a member that isn't in the group.
    """
    members = {member.id: member for member in group.members}
    stores = {subtopology.id: subtopology.state_stores for subtopology in group.subtopologies}
    counts = {name: dict.fromkeys(members, 0) for name in stores}
    stateful, total = dict.fromkeys(members, 0), dict.fromkeys(members, 0)
    by_process = {process_of(member): 0 for member in group.members}
    for task, owner in placement.active.items():
        counts[task.subtopology][owner] += 1
        total[owner] += 1
        if stores[task.subtopology]:
            stateful[owner] += 1
            by_process[process_of(members[owner])] += stores[task.subtopology]
    owned, moved = _moves(group, placement)
    costs = RestoreCosts(group)
    standbys = {task: _apart(members, placement.active.get(task), ids) for task, ids in placement.standby.items()}
    tasks = [sub.partitions for sub in group.subtopologies if sub.state_stores]
    return Metrics(
        subtopologies={name: _balance(of.values()) for name, of in counts.items()},
        stateful=_balance(stateful.values()),
        total=_balance(total.values()),
        state_stores=_state_stores(by_process, Counter(process_of(member) for member in group.members)),
        unplaced=sum(subtopology.partitions for subtopology in group.subtopologies) - len(placement.active),
        owned=owned,
        moved=len(moved),
        moved_stateful=sum(stores[task.subtopology] > 0 for task in moved),
        restore=sum((costs.of(task, owner) for task, owner in placement.active.items()), Restore()),
        standbys_wanted=group.standbys * sum(tasks),
        standbys_placed=sum(map(len, standbys.values())),
        standby_restore=sum((costs.of(task, one.id) for task, of in standbys.items() for one in of), Restore()),
        racks={tag: _rack_spread(tag, members, placement.active, standbys) for tag in group.rack_tags},
    )


def _balance(counts: Iterable[int]) -> Balance:
    numbers = list(counts)
    return Balance(sum(numbers), len(numbers), min(numbers, default=0), max(numbers, default=0))


def _state_stores(stores: Mapping[Hashable, int], sizes: Mapping[Hashable, int]) -> StateStores:
    if not stores:
        return StateStores(0, 0, Fraction(0))
    share = Fraction(sum(stores.values()), sum(sizes.values()))
    deviations = [count - share * sizes[process] for process, count in stores.items()]
    return StateStores(min(stores.values()), max(stores.values()), max(deviations) - min(deviations))


def _moves(group: Group, placement: Placement) -> tuple[int, list[TaskId]]:
    """The number of placed tasks that had an owner in the group, and those of them that another member got."""
    before: defaultdict[TaskId, set[str]] = defaultdict(set)
    for member in group.members:
        for task in member.active:
            before[task].add(member.id)
    owned = [(task, owner) for task, owner in placement.active.items() if task in before]
    return len(owned), [task for task, owner in owned if owner not in before[task]]


def _apart(members: Mapping[str, Member], active: str | None, standby: tuple[str, ...]) -> list[Member]:
    """The standbys in processes of their own; one that shares a process with another copy doesn't count."""
    taken = {process_of(members[active])} if active is not None else set()
    found = []
    for name in standby:
        if (process := process_of(members[name])) not in taken:
            taken.add(process)
            found.append(members[name])
    return found


def _rack_spread(
    tag: str, members: Mapping[str, Member], active: Mapping[TaskId, str], standbys: Mapping[TaskId, list[Member]]
) -> RackSpread:
    """The copies of a task in as many values as there are makes all of them apart; having none is a value, too."""
    values = {member.tags.get(tag) for member in members.values()}
    apart = possible = 0
    for task, copies in standbys.items():
        holders = [members[active[task]], *copies] if task in active else copies
        apart += max(0, len({holder.tags.get(tag) for holder in holders}) - 1)
        possible += max(0, min(len(holders), len(values)) - 1)
    return RackSpread(apart, possible)
