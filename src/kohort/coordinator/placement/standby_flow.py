"""The least movement of standbys, as a min-cost flow: what a standby costs on a member is its stickiness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kohort.coordinator.placement.min_cost_flow import MinCostFlow
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.standby_racks import Racks

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

_MANY: Final = 24  # with more processes, not every task is tried in each
_TRIED: Final = 8  # processes that a task is tried in then, beside those with state of it


def solve_standby_flow(
    problem: Problem, active: Sequence[int], racks: Racks, copies: Mapping[int, Sequence[int]]
) -> dict[int, list[int]]:
    """Places standbys on all members equally, if possible; then so that the least is restored.

        task --> kind of rack --> process --------------------------> member --> sink
                            '---> process with a standby of it before --^

    A task has as many units of flow as it needs standbys, and one arc to each process, so there is one standby at most
    in each. How many standbys each kind of rack gets is decided before: with one tag as evenly as possible, in any
    racks, and otherwise as in `copies`. With many processes, a task isn't tried in each of them, but in those with
    state of it, in those of `copies`, and in some more; a better solution may be missed then.

    Members get the floor or the ceiling of a fair share. Where processes and racks don't allow that, the sum of squares
    of their numbers is the least, by arcs that cost more for each standby that a member has already.

    Args:
        active: the member of each task.
        copies: the members with a standby of each task, in a placement to improve.
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
    """The placement with these bounds of each member's standbys; without any, the most even one."""
    import numpy as np

    process, count = problem.process, len(problem.members_of)
    keeps: list[tuple[int, int, int]] = []  # number of a task, process, a member of it that had the standby before
    states: list[tuple[int, int, int]] = []  # number of a task, process, its cost there
    kinds: list[tuple[int, int, int, int]] = []  # number of a task, kind of rack, least and most standbys there
    had: list[tuple[int, int]] = []  # number of a task, process
    for number, (task, members) in enumerate(copies.items()):
        keeps += [(number, process[member], member) for member in problem.previous_standbys.get(task, ())]
        states += [(number, at, cost) for at, cost in problem.costs_with_state(task).items()]
        had += [(number, process[member]) for member in members]
        room = racks.room(racks.kind[process[active[task]]], [racks.kind[process[member]] for member in members])
        kinds += [(number, kind, least, most) for kind, (least, most) in sorted(room.items())]
    keep_task, keep_process, keep_member = np.array(keeps, np.int64).reshape(-1, 3).T
    state_task, state_process, state_cost = np.array(states, np.int64).reshape(-1, 3).T
    kind_task, kind_kind, least, most = np.array(kinds, np.int64).reshape(-1, 4).T
    had_task, had_process = np.array(had, np.int64).reshape(-1, 2).T

    # A try is a task in a process; a place is a task in a kind of rack. Each is one number in a sorted array.
    known = np.fromiter(copies, np.int64)
    some = np.arange(len(copies))[:, None] * count + _some(known, count)
    more = (had_task * count + had_process, state_task * count + state_process, keep_task * count + keep_process)
    tries = np.unique(np.concatenate([some.ravel(), *more]))
    try_task, try_process = np.divmod(tries, count)
    places = kind_task * racks.kinds + kind_kind
    wanted = try_task * racks.kinds + np.array(racks.kind)[try_process]
    at = np.array(process)[np.array(active)[known]]
    fit = (try_process != at[try_task]) & np.isin(wanted, places)
    tries, try_task, try_process, wanted = tries[fit], try_task[fit], try_process[fit], wanted[fit]
    cost = np.array(problem.full_cost)[known[try_task]]
    with_state = np.isin(more[1], tries)
    cost[np.searchsorted(tries, more[1][with_state])] = state_cost[with_state]
    may_stay = np.isin(more[2], tries)
    keep_try, keep_member = np.searchsorted(tries, more[2][may_stay]), keep_member[may_stay]

    network = MinCostFlow(problem.standbys * len(copies))
    tasks, racked = network.nodes(len(copies)), network.nodes(len(kinds))
    processes, members_, sink = network.nodes(len(problem.members_of)), network.nodes(len(process)), network.nodes(1)
    kept = np.unique(keep_try)
    heads = processes[try_process]
    heads[kept] = network.nodes(len(kept))  # an arc to its previous member, and one to others of the process
    network.supply(tasks, problem.standbys)
    network.supply(sink, -problem.standbys * len(copies))
    network.arcs(tasks[kind_task], racked, most, least)
    new = np.ones(len(tries), np.int64)
    new[kept] = 0
    placed = network.arcs(racked[np.searchsorted(places, wanted)], heads, 1, restore=cost, moves=new)
    stays = network.arcs(heads[keep_try], members_[keep_member], 1)
    network.arcs(heads[kept], processes[try_process[kept]], 1, moves=1)
    to_member = network.arcs(processes[process], members_, problem.tasks)
    if bounds is not None:
        network.arcs(members_, sink, bounds[1], bounds[0])
    else:
        levels = np.arange(4 * problem.standbys * len(copies) // len(process) + 8)  # beyond, all costs are equal
        network.arcs(np.repeat(members_, len(levels)), sink, 1, uneven=np.tile(levels, len(members_)))
        network.arcs(members_, sink, len(copies), uneven=len(levels))
    flows = network.solve()

    stays_there = np.flatnonzero(flows[stays])
    stay = dict(zip(keep_try[stays_there].tolist(), keep_member[stays_there].tolist(), strict=True))
    counts = flows[to_member].tolist()
    free = [iter([member for member in numbers for _ in range(counts[member])]) for numbers in problem.members_of]
    placement: list[list[int]] = [[] for _ in copies]
    used = np.flatnonzero(flows[placed])
    for n, number, there in zip(used.tolist(), try_task[used].tolist(), try_process[used].tolist(), strict=True):
        placement[number].append(stay[n] if n in stay else next(free[there]))
    return dict(zip(copies, placement, strict=True))


def _some(tasks: NDArray[int64], count: int) -> NDArray[int64]:
    """For each task all processes; some of them, others for each task, if there are many."""
    import numpy as np

    if count <= _MANY:
        return np.tile(np.arange(count), (len(tasks), 1))
    return (tasks[:, None] * 31 + np.arange(_TRIED) * (count // _TRIED)) % count
