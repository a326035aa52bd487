"""The least movement of standbys, as a min-cost flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kohort.coordinator.placement.network import Network
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.racks import Racks

__all__ = ["move_least"]

_MANY: Final = 24  # processes, beyond which not every task is tried in every one
_TRIED: Final = 8  # processes in which a task is tried then, beside those that know it


def move_least(
    problem: Problem, active: Sequence[int], racks: Racks, copies: Mapping[int, Sequence[int]]
) -> dict[int, list[int]]:
    """Decide where standbys are: on all members equally many, if that can be; then so that the least is restored.

        task --> kind of rack --> process --------------------------> member --> sink
                            '---> process with a standby of it before --^

    A task has as many units of flow as it needs copies, and one arc to each process, so there is one copy at most in
    each. How many copies each kind of rack gets is decided before: with one tag as evenly as can be, in whichever
    racks, and otherwise as it was. With many processes, a task isn't tried in each of them, but in those that know it,
    in those that it had, and in some more; something better may be left undiscovered then.

    Members have the floor or the ceiling of a fair share. Where processes and racks don't allow that, the sum of
    squares of what they have is the least, by arcs that cost more for each copy that a member has already.

    Args:
        problem: what is placed.
        active: the member of each task.
        racks: the racks.
        copies: the members that keep copies of each task, in a placement that is to be improved.
    """
    count, members = problem.standbys * len(copies), len(problem.members)
    try:
        return _flow(problem, active, racks, copies, (count // members, -(-count // members)))
    except ValueError:
        return _flow(problem, active, racks, copies, None)


def _flow(
    problem: Problem,
    active: Sequence[int],
    racks: Racks,
    copies: Mapping[int, Sequence[int]],
    bounds: tuple[int, int] | None,
) -> dict[int, list[int]]:
    """The flow with these bounds of what each member has; without any, the most even one."""
    import numpy as np

    process = problem.process
    tries: list[tuple[int, int, int, int]] = []  # number of the task, process, number of its kind for it, cost
    keeps: list[tuple[int, int]] = []  # number of a try, a member of its process that kept the task before
    kinds: list[tuple[int, int, int]] = []  # number of a task, least and most copies in a kind of rack
    for number, (task, members) in enumerate(copies.items()):
        homes = problem.homes(task)
        at, had = process[active[task]], [process[member] for member in members]
        keepers = problem.keepers.get(task, ())
        tried = {*had, *homes, *(process[keeper] for keeper in keepers), *_some(task, len(problem.rows))} - {at}
        room = racks.room(racks.kind[at], [racks.kind[each] for each in had])
        place = {kind: len(kinds) + n for n, kind in enumerate(room)}
        kinds.extend((number, *room[kind]) for kind in room)
        for each in sorted(tried):
            if racks.kind[each] in place:
                keeps.extend((len(tries), keeper) for keeper in keepers if process[keeper] == each)
                tries.append((number, each, place[racks.kind[each]], homes.get(each, problem.whole[task])))
    _, try_process, try_kind, cost = np.array(tries, np.int64).reshape(-1, 4).T
    keep_try, keep_member = np.array(keeps, np.int64).reshape(-1, 2).T
    kind_task, least, most = np.array(kinds, np.int64).reshape(-1, 3).T

    network = Network(problem.standbys * len(copies))
    tasks, racked = network.nodes(len(copies)), network.nodes(len(kinds))
    processes, members_, sink = network.nodes(len(problem.rows)), network.nodes(len(process)), network.nodes(1)
    known = np.unique(keep_try)
    heads = processes[try_process]
    heads[known] = network.nodes(len(known))  # a way to its keeper, and one to others of the process
    network.supply(tasks, problem.standbys)
    network.supply(sink, -problem.standbys * len(copies))
    network.arcs(tasks[kind_task], racked, most, least)
    new = np.ones(len(tries), np.int64)
    new[known] = 0
    placed = network.arcs(racked[try_kind], heads, 1, restore=cost, moves=new)
    stays = network.arcs(heads[keep_try], members_[keep_member], 1)
    network.arcs(heads[known], processes[try_process[known]], 1, moves=1)
    seats = network.arcs(processes[process], members_, problem.tasks)
    if bounds is not None:
        network.arcs(members_, sink, bounds[1], bounds[0])
    else:
        levels = np.arange(4 * problem.standbys * len(copies) // len(process) + 8)  # beyond, all is equally bad
        network.arcs(np.repeat(members_, len(levels)), sink, 1, uneven=np.tile(levels, len(members_)))
        network.arcs(members_, sink, len(copies), uneven=len(levels))
    flows = network.solve()

    stay = {keeps[n][0]: keeps[n][1] for n in np.flatnonzero(flows[stays]).tolist()}
    free = {
        at: iter([member for member in rows for _ in range(flows[seats][member])])
        for at, rows in enumerate(problem.rows)
    }
    placement: list[list[int]] = [[] for _ in copies]
    for n in np.flatnonzero(flows[placed]).tolist():
        number, at, *_ = tries[n]
        placement[number].append(stay[n] if n in stay else next(free[at]))
    return dict(zip(copies, placement, strict=True))


def _some(task: int, count: int) -> range | set[int]:
    """All processes, or some of many, others for each task."""
    if count <= _MANY:
        return range(count)
    step = count // _TRIED
    return {(task * 31 + n * step) % count for n in range(_TRIED)}
