"""Active tasks of small groups, exactly, where a min-cost flow can't say all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kohort.coordinator.placement.choice import Choice
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.shares import Shares
from kohort.coordinator.placement.spread import Spread

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, CpSolver, IntVar, LinearExprT

__all__ = ["is_small", "solve_exactly"]

_SMALL: Final = 250  # decisions
_EFFORT: Final = 0.1  # for each objective, in the deterministic time of the solver, about as much as seconds
_LARGEST: Final = 2**59  # what sums of costs stay below

_Decisions = Mapping[tuple[int, int], "IntVar"]


def is_small(problem: Problem) -> bool:
    """Whether a group has so few members and tasks that solving it exactly takes a moment only."""
    known = sum(len(problem.owners(task)) + len(problem.homes(task)) for task in range(problem.tasks))
    return len(problem.members) * len(problem.names) + known <= _SMALL


def solve_exactly(problem: Problem, shares: Shares, spread: Spread, reached: int) -> Choice | None:
    """Decide for the least spread of state stores, then the least to restore, then the fewest tasks that move.

    By constraint programming (CP-SAT): tasks bring different numbers of state stores, and a flow has no way of counting
    them. Each objective is solved for on its own, within what was reached for those before.

    Args:
        problem: what is placed.
        shares: the fair shares.
        spread: the bounds of spread.
        reached: a spread that is known to be possible; it need not be the least.

    Returns:
        the best there is; None if the effort that is made wasn't enough to be sure.
    """
    from ortools.sat.python.cp_model import CpModel, LinearExpr

    model = CpModel()
    extras = _fair(model, problem, shares)
    uneven = _uneven(model, problem, spread, extras, reached)
    if reached > spread.least:
        if (solver := _minimize(model, uneven)) is None:
            return None
        model.add(uneven <= solver.value(uneven))

    kept, at_home = _staying(model, problem, shares, extras)
    shift = max(0, (sum(problem.whole) // _LARGEST).bit_length())
    stay = [(var, problem.whole[task]) for (task, _), var in kept.items()]
    stay += [(var, problem.whole[task] - problem.homes(task)[at]) for (task, at), var in at_home.items()]
    lost = -LinearExpr.weighted_sum([var for var, _ in stay], [saved >> shift for _, saved in stay])
    if (solver := _minimize(model, lost)) is None:
        return None
    model.add(lost <= solver.value(lost))
    if (solver := _minimize(model, -LinearExpr.sum(list(kept.values())))) is None:
        return None

    holders: dict[int, list[int]] = {subtopology: [] for subtopology in range(len(problem.names))}
    for (member, subtopology), extra in extras.items():
        if solver.boolean_value(extra):
            holders[subtopology].append(member)
    return Choice(
        holders,
        {task: owner for (task, owner), var in kept.items() if solver.boolean_value(var)},
        {task: process for (task, process), var in at_home.items() if solver.boolean_value(var)},
    )


def _fair(model: CpModel, problem: Problem, shares: Shares) -> dict[tuple[int, int], IntVar]:
    """Who gets an extra of what, by member and subtopology, so that all shares are fair."""
    from ortools.sat.python.cp_model import LinearExpr

    names = [subtopology for subtopology, rest in enumerate(shares.rest) if rest]
    members = range(len(problem.members))
    extras = {(member, subtopology): model.new_bool_var("") for member in members for subtopology in names}
    for subtopology in names:
        model.add(LinearExpr.sum([extras[member, subtopology] for member in members]) == shares.rest[subtopology])
    for member in members:
        some = LinearExpr.sum([extras[member, subtopology] for subtopology in names if problem.stores[subtopology]])
        model.add_linear_constraint(some, shares.stateful, shares.stateful_high)
        every = LinearExpr.sum([extras[member, subtopology] for subtopology in names])
        model.add_linear_constraint(every, shares.total, shares.total_high)
    return extras


def _uneven(model: CpModel, problem: Problem, spread: Spread, extras: _Decisions, reached: int) -> LinearExprT:
    """The spread of state stores; at most the one that was reached."""
    from ortools.sat.python.cp_model import LinearExpr

    far = 2 * len(problem.members) * (sum(problem.stores) + 1) * len(problem.members)
    lowest, highest = model.new_int_var(-far, far, ""), model.new_int_var(-far, far, "")
    for process, members in enumerate(problem.rows):
        mine = [(extra, problem.stores[s]) for (member, s), extra in extras.items() if member in members]
        stores = LinearExpr.weighted_sum([extra for extra, _ in mine], [count for _, count in mine])
        deviation = len(problem.members) * stores + spread.deviation(process, 0)
        model.add(lowest <= deviation)
        model.add(deviation <= highest)
    model.add(highest - lowest <= reached)
    return highest - lowest


def _staying(
    model: CpModel, problem: Problem, shares: Shares, extras: _Decisions
) -> tuple[dict[tuple[int, int], IntVar], dict[tuple[int, int], IntVar]]:
    """Which tasks stay with an owner, and which others go where state of theirs is; no more than there are seats."""
    from ortools.sat.python.cp_model import LinearExpr

    kept = {(task, owner): model.new_bool_var("") for task in range(problem.tasks) for owner in problem.owners(task)}
    at_home = {(task, at): model.new_bool_var("") for task in range(problem.tasks) for at in problem.homes(task)}
    by_task: dict[int, list[IntVar]] = {}
    by_member: dict[tuple[int, int], list[IntVar]] = {}
    by_process: dict[tuple[int, int], list[IntVar]] = {}
    for (task, owner), var in kept.items():
        subtopology = problem.subtopology[task]
        by_task.setdefault(task, []).append(var)
        by_member.setdefault((owner, subtopology), []).append(var)
        by_process.setdefault((problem.process[owner], subtopology), []).append(var)
    for (task, process), var in at_home.items():
        by_task.setdefault(task, []).append(var)
        by_process.setdefault((process, problem.subtopology[task]), []).append(var)
    for choices in by_task.values():
        model.add_at_most_one(choices)
    for (member, subtopology), staying in by_member.items():
        model.add(LinearExpr.sum(staying) <= shares.floor[subtopology] + extras.get((member, subtopology), 0))
    for (process, subtopology), staying in by_process.items():
        members = problem.rows[process]
        more = LinearExpr.sum([extras[member, subtopology] for member in members if (member, subtopology) in extras])
        model.add(LinearExpr.sum(staying) <= len(members) * shares.floor[subtopology] + more)
    return kept, at_home


def _minimize(model: CpModel, objective: LinearExprT) -> CpSolver | None:
    """Solve, always in the same way; None if nothing was proved in the time."""
    from ortools.sat.python.cp_model import OPTIMAL, CpSolver

    model.minimize(objective)
    solver = CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = _EFFORT
    return solver if solver.solve(model) == OPTIMAL else None
