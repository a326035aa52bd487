"""The least movement of standbys, as a min-cost flow: what a standby costs on a member is its stickiness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kohort.coordinator.placement.min_cost_flow import MinCostFlow
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.standby_racks import Racks

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
    process, members_of, kind = problem.process, problem.members_of, racks.kind
    room = {
        (task, there): least_and_most
        for task, members in copies.items()
        for there, least_and_most in sorted(
            racks.room(kind[process[active[task]]], [kind[process[member]] for member in members]).items()
        )
    }
    tries = [
        (task, at)
        for task, members in copies.items()
        for at in _tried(problem, task, members)
        if at != process[active[task]] and (task, kind[at]) in room
    ]
    has_try = set(tries)
    keeps = [
        (task, member)
        for task in copies
        for member in problem.previous_standbys.get(task, ())
        if (task, process[member]) in has_try
    ]

    network = MinCostFlow(problem.standbys * len(copies))
    node_of = dict(zip(copies, network.nodes(len(copies), supply=problem.standbys), strict=True))
    at_kind = dict(zip(room, network.nodes(len(room)), strict=True))
    processes, members_ = network.nodes(len(members_of)), network.nodes(len(process))
    (sink,) = network.nodes(1, supply=-problem.standbys * len(copies))
    # A node of its own has an arc to the previous member, and one to others of the process.
    kept_at = sorted({(task, process[member]) for task, member in keeps})
    kept = dict(zip(kept_at, network.nodes(len(kept_at)), strict=True))
    least, most = ([bounds[end] for bounds in room.values()] for end in (0, 1))
    network.arcs([node_of[task] for task, _ in room], list(at_kind.values()), most, least)
    placed = network.arcs(
        [at_kind[task, kind[at]] for task, at in tries],
        [kept.get((task, at), processes[at]) for task, at in tries],
        1,
        restore=[problem.costs_with_state(task).get(at, problem.full_cost[task]) for task, at in tries],
        moves=[(task, at) not in kept for task, at in tries],
    )
    stays = network.arcs(
        [kept[task, process[member]] for task, member in keeps], [members_[member] for _, member in keeps], 1
    )
    network.arcs(list(kept.values()), [processes[at] for _, at in kept], 1, moves=1)
    to_member = network.arcs([processes[at] for at in process], members_, problem.tasks)
    if bounds is not None:
        network.arcs(members_, [sink] * len(members_), bounds[1], bounds[0])
    else:
        levels = range(4 * problem.standbys * len(copies) // len(process) + 8)  # beyond, all costs are equal
        steps = [(node, level) for node in members_ for level in levels]
        network.arcs([node for node, _ in steps], [sink] * len(steps), 1, uneven=[level for _, level in steps])
        network.arcs(members_, [sink] * len(members_), len(copies), uneven=len(levels))

    flows = network.solve()
    stay = {(task, process[member]): member for (task, member), arc in zip(keeps, stays, strict=True) if flows[arc]}
    free = [iter([member for member in some for _ in range(flows[to_member[member]])]) for some in members_of]
    placement: dict[int, list[int]] = {task: [] for task in copies}
    for (task, at), arc in zip(tries, placed, strict=True):
        if flows[arc]:
            placement[task].append(stay[task, at] if (task, at) in stay else next(free[at]))
    return placement


def _tried(problem: Problem, task: int, members: Sequence[int]) -> Sequence[int]:
    """The processes that a task's standbys may go to, in ascending order: all, or some of many, others for each task.

    Args:
        members: those with a standby of the task, in the placement to improve.
    """
    count = len(problem.members_of)
    if count <= _MANY:
        return range(count)
    tried = {(task * 31 + number * (count // _TRIED)) % count for number in range(_TRIED)}
    tried.update(problem.costs_with_state(task))
    tried.update(problem.process[member] for member in (*members, *problem.previous_standbys.get(task, ())))
    return sorted(tried)
