"""How good a placement of standbys can be at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    restore = new = must_restore = must_be_new = 0
    for task, members in copies.items():
        keepers = problem.keepers.get(task, ())
        strangers = sum(member not in keepers for member in members)
        if not strangers and task not in problem.lags:
            continue  # all stayed, and all have caught up
        new += strangers
        here = problem.process[active[task]]
        known = {problem.process[keeper] for keeper in keepers} - {here}
        must_be_new += max(0, len(members) - len(known))
        homes, whole = problem.homes(task), problem.whole[task]
        costs = [cost for process, cost in homes.items() if process != here] + [whole] * len(members)
        must_restore += sum(sorted(costs)[: len(members)])
        restore += sum(homes.get(problem.process[member], whole) for member in members)
    if new > must_be_new and new > _newcomers(problem, active, copies, loads):
        return False
    return restore <= must_restore or restore <= _restored(problem, active, copies, min(loads))


def _newcomers(
    problem: Problem, active: Sequence[int], copies: Mapping[int, Sequence[int]], loads: Sequence[int]
) -> int:
    """How many copies are new to their member, at least, as members have to have fair shares."""
    had = [0] * len(loads)
    for task, keepers in problem.keepers.items():
        for keeper in keepers:
            had[keeper] += problem.process[keeper] != problem.process[active[task]]
    come = sum(max(0, min(loads) - count) for count in had)
    stay = sum(min(max(loads), count) for count in had)
    return max(come, sum(loads) - stay)


def _restored(problem: Problem, active: Sequence[int], copies: Mapping[int, Sequence[int]], floor: int) -> int:
    """What is restored, at least, as each process has to have a floor, and has caught up with fewer."""
    caught_up = [0] * len(problem.rows)
    costs = []
    for task in copies:
        here, whole = problem.process[active[task]], problem.whole[task]
        if task in problem.lags:
            behind = [cost for cost in problem.homes(task).values() if cost]
            known = {process for process, cost in problem.homes(task).items() if not cost}
            costs.append(min(behind, default=whole))
        else:  # all copies that there are have caught up
            holders = (*problem.owners(task), *problem.keepers.get(task, ()))
            known = {problem.process[holder] for holder in holders}
            costs.append(whole)
        for process in known:
            caught_up[process] += process != here
    lack = sum(max(0, len(rows) * floor - had) for rows, had in zip(problem.rows, caught_up, strict=True))
    costs.sort()
    return sum(costs[:lack])
