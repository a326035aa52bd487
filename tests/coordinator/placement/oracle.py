"""The best placement of active tasks, found by trying everything; shares no code with the assignors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import NamedTuple

from kohort.coordinator.placement import Group, Member, Placement, TaskId


class Worth(NamedTuple):
    """What is minimised, in this order."""

    spread: Fraction
    restore: int
    moved: int


def process_of(member: Member) -> tuple[str, str]:
    return (member.process, "") if member.process else ("", member.id)


def restore_cost(group: Group, task: TaskId, member: Member) -> int:
    """What a member restores to run a task."""
    stores = next(each.state_stores for each in group.subtopologies if each.id == task.subtopology)
    if not stores or task in member.active:
        return 0
    processes = {each.process for each in group.members} - {""}
    lags = {process: lag for (process, of), lag in group.lags.items() if of == task and process in processes}
    whole = max(group.ends.get(task, stores), *lags.values(), 0)
    if member.process in lags:
        lag = lags[member.process]
        return 0 if lag <= group.acceptable_lag else lag
    mates = [each for each in group.members if process_of(each) == process_of(member)]
    return 0 if any(task in each.active or task in each.standby for each in mates) else whole


def copy_cost(group: Group, task: TaskId, member: Member) -> int:
    """What a member restores to keep a copy of a task; who ran it before has what its process is known to have."""
    return restore_cost(group, task, replace(member, active=frozenset()))


def worth(group: Group, active: Mapping[TaskId, str]) -> Worth:
    """What a placement comes to."""
    members = {member.id: member for member in group.members}
    stores = {subtopology.id: subtopology.state_stores for subtopology in group.subtopologies}
    share = Fraction(sum(stores[task.subtopology] for task in active), len(members))
    uneven = {process_of(member): Fraction(0) for member in group.members}
    for member in group.members:
        uneven[process_of(member)] -= share
    for task, owner in active.items():
        uneven[process_of(members[owner])] += stores[task.subtopology]
    return Worth(
        max(uneven.values()) - min(uneven.values()),
        sum(restore_cost(group, task, members[owner]) for task, owner in active.items()),
        sum(task not in members[owner].active for task, owner in active.items()),
    )


def is_fair(counts: Sequence[int]) -> bool:
    """Whether all are the floor or the ceiling of the mean."""
    return max(counts) - min(counts) <= 1


def is_balanced(group: Group, active: Mapping[TaskId, str]) -> bool:
    """Whether members have fair shares of each subtopology, of stateful tasks, and of all tasks."""
    names = [subtopology.id for subtopology in group.subtopologies]
    stateful = {subtopology.id for subtopology in group.subtopologies if subtopology.state_stores}

    def fair(wanted: set[str]) -> bool:
        counts = {member.id: 0 for member in group.members}
        for task, owner in active.items():
            counts[owner] += task.subtopology in wanted
        return is_fair(list(counts.values()))

    return all(map(fair, [*({name} for name in names), stateful, set(names)]))


def everything(group: Group) -> Iterator[dict[TaskId, str]]:
    """All placements that there are."""
    tasks = [TaskId(each.id, n) for each in group.subtopologies for n in range(each.partitions)]
    for owners in product([member.id for member in group.members], repeat=len(tasks)):
        yield dict(zip(tasks, owners, strict=True))


def best(group: Group) -> Worth:
    """The best worth of a balanced placement: over all fair numbers of tasks of each subtopology for each member."""
    members = group.members
    count = len(members)
    numbers = []
    for subtopology in group.subtopologies:
        floor, rest = divmod(subtopology.partitions, count)
        some = [[floor + (at in chosen) for at in range(count)] for chosen in combinations(range(count), rest)]
        numbers.append([tuple(each) for each in some])

    @cache
    def movement(index: int, seats: tuple[int, ...], partition: int = 0) -> tuple[int, int]:
        """The least to restore, and tasks moved, of a subtopology's tasks from a partition on."""
        subtopology = group.subtopologies[index]
        if partition == subtopology.partitions:
            return 0, 0
        task = TaskId(subtopology.id, partition)
        options = []
        for at, member in enumerate(members):
            if seats[at]:
                less = (*seats[:at], seats[at] - 1, *seats[at + 1 :])
                restore, moved = movement(index, less, partition + 1)
                options.append((restore + restore_cost(group, task, member), moved + (task not in member.active)))
        return min(options)

    found = []
    processes = sorted({process_of(member) for member in members})
    for choice in product(*numbers):
        totals = [sum(column) for column in zip(*choice, strict=True)]
        zipped = list(zip(choice, group.subtopologies, strict=True))
        stateful = [sum(each[at] for each, sub in zipped if sub.state_stores) for at in range(count)]
        if not is_fair(totals) or not is_fair(stateful):
            continue
        stores = [sum(each[at] * sub.state_stores for each, sub in zipped) for at in range(count)]
        share = Fraction(sum(stores), count)
        uneven = [
            sum(stores[at] - share for at, member in enumerate(members) if process_of(member) == process)
            for process in processes
        ]
        found.append((max(uneven) - min(uneven), choice))
    spread = min(each for each, _ in found)
    movements = []
    for each, choice in found:
        if each == spread:
            parts = [movement(index, seats) for index, seats in enumerate(choice)]
            movements.append((sum(restore for restore, _ in parts), sum(moved for _, moved in parts)))
    return Worth(spread, *min(movements))


class StandbyWorth(NamedTuple):
    """What is minimised in standbys, in this order."""

    agreements: int
    squares: int
    restore: int
    new: int


def _agreements(group: Group, members: Sequence[Member]) -> int:
    pairs = combinations(members, 2)
    return sum(one.tags.get(tag) == other.tags.get(tag) for one, other in pairs for tag in group.rack_tags)


def standby_worth(group: Group, placement: Placement) -> StandbyWorth:
    """What a placement's standbys come to."""
    members = {member.id: member for member in group.members}
    load = dict.fromkeys(members, 0)
    agreements = restore = new = 0
    for task, holders in placement.standby.items():
        hosts = [members[each] for each in (placement.active[task], *holders)]
        agreements += _agreements(group, hosts)
        for holder in hosts[1:]:
            load[holder.id] += 1
            restore += copy_cost(group, task, holder)
            new += task not in holder.standby
    return StandbyWorth(agreements, sum(count**2 for count in load.values()), restore, new)


def best_standbys(group: Group, active: Mapping[TaskId, str]) -> StandbyWorth:
    """The best worth of standbys for given active tasks: over all that members may have, task by task."""
    members = {member.id: (at, member) for at, member in enumerate(group.members)}
    stateful = {subtopology.id for subtopology in group.subtopologies if subtopology.state_stores}
    copies = min(group.standbys, len({process_of(member) for member in group.members}) - 1)
    reached = {(0,) * len(members): (0, 0, 0)}
    for task, owner in active.items():
        if task.subtopology not in stateful or not copies:
            continue
        options = []
        for chosen in combinations(group.members, copies):
            hosts = [members[owner][1], *chosen]
            if len(set(map(process_of, hosts))) == len(hosts):
                restore = sum(copy_cost(group, task, holder) for holder in chosen)
                new = sum(task not in holder.standby for holder in chosen)
                options.append((_agreements(group, hosts), restore, new, chosen))
        least = min(agreements for agreements, *_ in options)
        then: dict[tuple[int, ...], tuple[int, int, int]] = {}
        for load, before in reached.items():
            for agreements, restore, new, chosen in options:
                if agreements == least:
                    more = list(load)
                    for holder in chosen:
                        more[members[holder.id][0]] += 1
                    after = before[0] + agreements, before[1] + restore, before[2] + new
                    then[tuple(more)] = min(after, then.get(tuple(more), after))
        reached = then
    return min(
        StandbyWorth(agreements, sum(count**2 for count in load), restore, new)
        for load, (agreements, restore, new) in reached.items()
    )
