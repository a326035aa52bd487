"""The least movement of standbys, as a min-cost flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kohort.coordinator.placement.network import Network
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.racks import Racks

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

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

    process, count = problem.process, len(problem.rows)
    keeps: list[tuple[int, int, int]] = []  # number of a task, process, a member of it that kept the task before
    homes: list[tuple[int, int, int]] = []  # number of a task, process, its cost there
    kinds: list[tuple[int, int, int, int]] = []  # number of a task, kind of rack, least and most copies there
    had: list[tuple[int, int]] = []  # number of a task, process
    for number, (task, members) in enumerate(copies.items()):
        keeps += [(number, process[keeper], keeper) for keeper in problem.keepers.get(task, ())]
        homes += [(number, at, cost) for at, cost in problem.homes(task).items()]
        had += [(number, process[member]) for member in members]
        room = racks.room(racks.kind[process[active[task]]], [racks.kind[process[member]] for member in members])
        kinds += [(number, kind, least, most) for kind, (least, most) in sorted(room.items())]
    keep_task, keep_process, keep_member = np.array(keeps, np.int64).reshape(-1, 3).T
    home_task, home_process, home_cost = np.array(homes, np.int64).reshape(-1, 3).T
    kind_task, kind_kind, least, most = np.array(kinds, np.int64).reshape(-1, 4).T
    had_task, had_process = np.array(had, np.int64).reshape(-1, 2).T

    # A try is a task in a process; a place is a task in a kind of rack. Both are found by one sorted number.
    known = np.fromiter(copies, np.int64)
    some = np.arange(len(copies))[:, None] * count + _some(known, count)
    more = (had_task * count + had_process, home_task * count + home_process, keep_task * count + keep_process)
    tries = np.unique(np.concatenate([some.ravel(), *more]))
    try_task, try_process = np.divmod(tries, count)
    places = kind_task * racks.kinds + kind_kind
    wanted = try_task * racks.kinds + np.array(racks.kind)[try_process]
    at = np.array(process)[np.array(active)[known]]
    fit = (try_process != at[try_task]) & np.isin(wanted, places)
    tries, try_task, try_process, wanted = tries[fit], try_task[fit], try_process[fit], wanted[fit]
    cost = np.array(problem.whole)[known[try_task]]
    with_state = np.isin(more[1], tries)
    cost[np.searchsorted(tries, more[1][with_state])] = home_cost[with_state]
    may_stay = np.isin(more[2], tries)
    keep_try, keep_member = np.searchsorted(tries, more[2][may_stay]), keep_member[may_stay]

    network = Network(problem.standbys * len(copies))
    tasks, racked = network.nodes(len(copies)), network.nodes(len(kinds))
    processes, members_, sink = network.nodes(len(problem.rows)), network.nodes(len(process)), network.nodes(1)
    kept = np.unique(keep_try)
    heads = processes[try_process]
    heads[kept] = network.nodes(len(kept))  # a way to its keeper, and one to others of the process
    network.supply(tasks, problem.standbys)
    network.supply(sink, -problem.standbys * len(copies))
    network.arcs(tasks[kind_task], racked, most, least)
    new = np.ones(len(tries), np.int64)
    new[kept] = 0
    placed = network.arcs(racked[np.searchsorted(places, wanted)], heads, 1, restore=cost, moves=new)
    stays = network.arcs(heads[keep_try], members_[keep_member], 1)
    network.arcs(heads[kept], processes[try_process[kept]], 1, moves=1)
    seats = network.arcs(processes[process], members_, problem.tasks)
    if bounds is not None:
        network.arcs(members_, sink, bounds[1], bounds[0])
    else:
        levels = np.arange(4 * problem.standbys * len(copies) // len(process) + 8)  # beyond, all is equally bad
        network.arcs(np.repeat(members_, len(levels)), sink, 1, uneven=np.tile(levels, len(members_)))
        network.arcs(members_, sink, len(copies), uneven=len(levels))
    flows = network.solve()

    stays_there = np.flatnonzero(flows[stays])
    stay = dict(zip(keep_try[stays_there].tolist(), keep_member[stays_there].tolist(), strict=True))
    seated = flows[seats].tolist()
    free = [iter([member for member in rows for _ in range(seated[member])]) for rows in problem.rows]
    placement: list[list[int]] = [[] for _ in copies]
    used = np.flatnonzero(flows[placed])
    for n, number, there in zip(used.tolist(), try_task[used].tolist(), try_process[used].tolist(), strict=True):
        placement[number].append(stay[n] if n in stay else next(free[there]))
    return dict(zip(copies, placement, strict=True))


def _some(tasks: NDArray[int64], count: int) -> NDArray[int64]:
    """For each task all processes, or some of many, others for each."""
    import numpy as np

    if count <= _MANY:
        return np.tile(np.arange(count), (len(tasks), 1))
    return (tasks[:, None] * 31 + np.arange(_TRIED) * (count // _TRIED)) % count
