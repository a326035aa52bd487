"""Lower bounds for placements of standbys: a greedy one that reaches them needs no flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from kohort.coordinator.placement.problem import Problem


def are_standbys_provably_best(problem: Problem, active: Sequence[int], copies: Mapping[int, Sequence[int]]) -> bool:
    """Whether counting proves that standbys in the best racks can't be better.

    They can't if members have fair shares of them, and only what has to be restored is restored, and is new to its
    member: where a task had fewer standbys than it needs, and where a member had fewer than the floor of its share, or
    more than the ceiling.

    Args:
        active: the member of each task.
        copies: the members with a standby of each task.
    """
    if not copies:
        return True
    loads = [0] * len(problem.members)
    for members in copies.values():
        for member in members:
            loads[member] += 1
    if max(loads) - min(loads) > 1:
        return False
    restore = new = 0
    # By the process of the active task, so outside of it: what tasks need at least, as they had fewer standbys.
    must_restore, must_be_new = [0] * len(problem.members_of), [0] * len(problem.members_of)
    for task, members in copies.items():
        previous = problem.previous_standbys.get(task, ())
        if members == previous and task not in problem.lags:
            continue  # all stay, and all have caught up
        new += sum(member not in previous for member in members)
        here = problem.process[active[task]]
        known = {problem.process[member] for member in previous} - {here}
        must_be_new[here] += max(0, len(members) - len(known))
        with_state, full_cost = problem.costs_with_state(task), problem.full_cost[task]
        costs = [cost for process, cost in with_state.items() if process != here] + [full_cost] * len(members)
        must_restore[here] += sum(sorted(costs)[: len(members)])
        restore += sum(with_state.get(problem.process[member], full_cost) for member in members)
    if new > sum(must_be_new) and new > _new_standbys(problem, active, loads, must_be_new):
        return False
    return restore <= sum(must_restore) or restore <= _restored(problem, active, copies, min(loads), must_restore)


def _new_standbys(problem: Problem, active: Sequence[int], loads: Sequence[int], needed: Sequence[int]) -> int:
    """The least number of standbys that are new to their member, as members have to have fair shares.

    Args:
        active: the member of each task.
        loads: standbys of each member, in fair shares.
        needed: the least number of new standbys that tasks need, by the process of the active task.
    """
    process = problem.process
    had = [0] * len(loads)
    for task, previous in problem.previous_standbys.items():
        here = process[active[task]]
        for member in previous:
            if process[member] != here:
                had[member] += 1
    floor, ceiling = min(loads), max(loads)
    come = [sum([max(0, floor - had[member]) for member in members]) for members in problem.members_of]
    stay = sum([min(ceiling, count) for count in had])
    everywhere = sum(come)
    apart = (here + max(elsewhere, everywhere - here) for here, elsewhere in zip(come, needed, strict=True))
    return max(sum(loads) - stay, *apart)


def _restored(
    problem: Problem, active: Sequence[int], copies: Mapping[int, Sequence[int]], floor: int, needed: Sequence[int]
) -> int:
    """The least that has to be restored, as each process has to have the floor, but has caught up with fewer.

    Args:
        active: the member of each task.
        copies: the members with a standby of each task.
        floor: least number of standbys of each member.
        needed: the least that tasks restore, by the process of the active task.
    """
    process = problem.process
    caught_up = [0] * len(problem.members_of)
    costs = []  # the least that a standby of each task costs, if it costs something
    for task in copies:
        if task in problem.lags:
            with_state = problem.costs_with_state(task)
            costs.append(min((cost for cost in with_state.values() if cost), default=problem.full_cost[task]))
            holders = [at for at, cost in with_state.items() if not cost]
        else:  # all copies have caught up; several in one process are rare, and do no harm
            costs.append(problem.full_cost[task])
            holders = [process[member] for member in problem.previous_standbys.get(task, ())]
            if task in problem.duplicate_owners or problem.previous_owner[task] != active[task]:
                holders += [process[owner] for owner in problem.previous_owners(task)]
        here = process[active[task]]
        for at in holders:
            if at != here:
                caught_up[at] += 1
    lack = [max(0, len(members) * floor - had) for members, had in zip(problem.members_of, caught_up, strict=True)]
    costs.sort()
    everywhere = sum(
        [cost for cost in costs for _ in range(problem.standbys)][: sum(lack)]
    )  # a task may be restored in several processes
    cheapest = list(accumulate(costs, initial=0))
    apart = (cheapest[here] + elsewhere for here, elsewhere in zip(lack, needed, strict=True))
    return max(everywhere, *apart)
