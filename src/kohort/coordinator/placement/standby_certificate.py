"""How good a placement of standbys can be at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from kohort.coordinator.placement.problem import Problem

__all__ = ["are_certainly_best"]


def are_certainly_best(problem: Problem, active: Sequence[int], copies: Mapping[int, Sequence[int]]) -> bool:
    """Whether counting is enough to see that standbys which are in the best racks can't be better.

    They can't, if members have fair shares of them, and nothing is restored and no copy is new to its member but
    what has to be: where a task had fewer copies than it needs, and where a member had fewer than the floor of its
    share, or more than the ceiling.

    Args:
        problem: what is placed.
        active: the member of each task.
        copies: the members that keep a copy of each task.
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
    # By the process of the active ones, so outside of it: what tasks need at least, as they had fewer copies.
    must_restore, must_be_new = [0] * len(problem.rows), [0] * len(problem.rows)
    for task, members in copies.items():
        keepers = problem.keepers.get(task, ())
        if members == keepers and task not in problem.lags:
            continue  # all stayed, and all have caught up
        new += sum(member not in keepers for member in members)
        here = problem.process[active[task]]
        known = {problem.process[keeper] for keeper in keepers} - {here}
        must_be_new[here] += max(0, len(members) - len(known))
        homes, whole = problem.homes(task), problem.whole[task]
        costs = [cost for process, cost in homes.items() if process != here] + [whole] * len(members)
        must_restore[here] += sum(sorted(costs)[: len(members)])
        restore += sum(homes.get(problem.process[member], whole) for member in members)
    if new > sum(must_be_new) and new > _newcomers(problem, active, loads, must_be_new):
        return False
    return restore <= sum(must_restore) or restore <= _restored(problem, active, copies, min(loads), must_restore)


def _newcomers(problem: Problem, active: Sequence[int], loads: Sequence[int], needed: Sequence[int]) -> int:
    """How many copies are new to their member, at least, as members have to have fair shares.

    Args:
        problem: what is placed.
        active: the member of each task.
        loads: copies of each member, which are fair.
        needed: new copies that tasks need at least, by the process of the active ones.
    """
    process = problem.process
    had = [0] * len(loads)
    for task, keepers in problem.keepers.items():
        here = process[active[task]]
        for keeper in keepers:
            if process[keeper] != here:
                had[keeper] += 1
    floor, ceiling = min(loads), max(loads)
    come = [sum([max(0, floor - had[member]) for member in members]) for members in problem.rows]
    stay = sum([min(ceiling, count) for count in had])
    everywhere = sum(come)
    apart = (here + max(elsewhere, everywhere - here) for here, elsewhere in zip(come, needed, strict=True))
    return max(sum(loads) - stay, *apart)


def _restored(
    problem: Problem, active: Sequence[int], copies: Mapping[int, Sequence[int]], floor: int, needed: Sequence[int]
) -> int:
    """What is restored, at least, as each process has to have a floor, and has caught up with fewer.

    Args:
        problem: what is placed.
        active: the member of each task.
        copies: the members that keep a copy of each task.
        floor: copies that each member has at least.
        needed: what tasks restore at least, by the process of the active ones.
    """
    process = problem.process
    caught_up = [0] * len(problem.rows)
    costs = []  # the least that a copy of each task costs, where it costs something
    for task in copies:
        if task in problem.lags:
            homes = problem.homes(task)
            costs.append(min((cost for cost in homes.values() if cost), default=problem.whole[task]))
            holders = [at for at, cost in homes.items() if not cost]
        else:  # all copies that there are have caught up; that several are in one process is rare, and no harm
            costs.append(problem.whole[task])
            holders = [process[keeper] for keeper in problem.keepers.get(task, ())]
            if task in problem.rivals or problem.owner[task] != active[task]:
                holders += [process[owner] for owner in problem.owners(task)]
        here = process[active[task]]
        for at in holders:
            if at != here:
                caught_up[at] += 1
    lack = [max(0, len(rows) * floor - had) for rows, had in zip(problem.rows, caught_up, strict=True)]
    costs.sort()
    everywhere = sum([cost for cost in costs for _ in range(problem.standbys)][: sum(lack)])  # a task may be in several
    cheapest = list(accumulate(costs, initial=0))
    apart = (cheapest[here] + elsewhere for here, elsewhere in zip(lack, needed, strict=True))
    return max(everywhere, *apart)
