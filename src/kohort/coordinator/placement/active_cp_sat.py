"""Active tasks of small groups with CP-SAT, exactly, where a min-cost flow isn't enough."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kohort.coordinator.placement.active_solution import ActiveSolution
from kohort.coordinator.placement.fair_shares import FairShares
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.state_store_spread import StateStoreSpread

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, CpSolver, IntVar, LinearExprT

_SMALL: Final = 250  # decision variables
_EFFORT: Final = 0.1  # for each objective, in the deterministic time of the solver, about as much as seconds
_LARGEST: Final = 2**59  # bound of sums of costs

_Decisions = Mapping[tuple[int, int], "IntVar"]


def is_small(problem: Problem) -> bool:
    """Whether a group is small enough for an exact solution in a moment."""
    tasks = range(problem.tasks)
    known = sum(len(problem.previous_owners(task)) + len(problem.costs_with_state(task)) for task in tasks)
    return len(problem.members) * len(problem.names) + known <= _SMALL


def solve_with_cp_sat(
    problem: Problem, shares: FairShares, spread: StateStoreSpread, reached: int
) -> ActiveSolution | None:
    """Finds the least spread of state stores, then the least to restore, then the fewest tasks that move.

    With constraint programming (CP-SAT), since tasks have different numbers of state stores, which a flow can't count.
    Each objective is solved on its own, within the optimum of those before.

    Args:
        reached: a spread that is known to be possible.

    Returns:
        the optimum; None if it wasn't proved within the effort.
    """
    from ortools.sat.python.cp_model import CpModel, LinearExpr

    model = CpModel()
    extras = _extra_tasks(model, problem, shares)
    uneven = _spread(model, problem, spread, extras, reached)
    if reached > spread.least:
        if (solver := _minimize(model, uneven)) is None:
            return None
        model.add(uneven <= solver.value(uneven))

    kept, with_state = _staying(model, problem, shares, extras)
    shift = max(0, (sum(problem.full_cost) // _LARGEST).bit_length())
    stay = [(var, problem.full_cost[task]) for (task, _), var in kept.items()]
    stay += [
        (var, problem.full_cost[task] - problem.costs_with_state(task)[at]) for (task, at), var in with_state.items()
    ]
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
    return ActiveSolution(
        holders,
        {task: owner for (task, owner), var in kept.items() if solver.boolean_value(var)},
        {task: process for (task, process), var in with_state.items() if solver.boolean_value(var)},
    )


def _extra_tasks(model: CpModel, problem: Problem, shares: FairShares) -> dict[tuple[int, int], IntVar]:
    """Which members get an extra task of which subtopology, so that all shares are fair."""
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


def _spread(
    model: CpModel, problem: Problem, spread: StateStoreSpread, extras: _Decisions, reached: int
) -> LinearExprT:
    """The spread of state stores, at most `reached`."""
    from ortools.sat.python.cp_model import LinearExpr

    far = 2 * len(problem.members) * (sum(problem.stores) + 1) * len(problem.members)
    lowest, highest = model.new_int_var(-far, far, ""), model.new_int_var(-far, far, "")
    for process, members in enumerate(problem.members_of):
        mine = [(extra, problem.stores[s]) for (member, s), extra in extras.items() if member in members]
        stores = LinearExpr.weighted_sum([extra for extra, _ in mine], [count for _, count in mine])
        deviation = len(problem.members) * stores + spread.deviation(process, 0)
        model.add(lowest <= deviation)
        model.add(deviation <= highest)
    model.add(highest - lowest <= reached)
    return highest - lowest


def _staying(
    model: CpModel, problem: Problem, shares: FairShares, extras: _Decisions
) -> tuple[dict[tuple[int, int], IntVar], dict[tuple[int, int], IntVar]]:
    """Which tasks stay with an owner, and which others go where their state is, within the quotas."""
    from ortools.sat.python.cp_model import LinearExpr

    tasks = range(problem.tasks)
    kept = {(task, owner): model.new_bool_var("") for task in tasks for owner in problem.previous_owners(task)}
    with_state = {(task, at): model.new_bool_var("") for task in tasks for at in problem.costs_with_state(task)}
    by_task: dict[int, list[IntVar]] = {}
    by_member: dict[tuple[int, int], list[IntVar]] = {}
    by_process: dict[tuple[int, int], list[IntVar]] = {}
    for (task, owner), var in kept.items():
        subtopology = problem.subtopology[task]
        by_task.setdefault(task, []).append(var)
        by_member.setdefault((owner, subtopology), []).append(var)
        by_process.setdefault((problem.process[owner], subtopology), []).append(var)
    for (task, process), var in with_state.items():
        by_task.setdefault(task, []).append(var)
        by_process.setdefault((process, problem.subtopology[task]), []).append(var)
    for choices in by_task.values():
        model.add_at_most_one(choices)
    for (member, subtopology), staying in by_member.items():
        model.add(LinearExpr.sum(staying) <= shares.floor[subtopology] + extras.get((member, subtopology), 0))
    for (process, subtopology), staying in by_process.items():
        members = problem.members_of[process]
        more = LinearExpr.sum([extras[member, subtopology] for member in members if (member, subtopology) in extras])
        model.add(LinearExpr.sum(staying) <= len(members) * shares.floor[subtopology] + more)
    return kept, with_state


def _minimize(model: CpModel, objective: LinearExprT) -> CpSolver | None:
    """Solves deterministically; None if no optimum was proved within the effort."""
    from ortools.sat.python.cp_model import OPTIMAL, CpSolver

    model.minimize(objective)
    solver = CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = _EFFORT
    return solver if solver.solve(model) == OPTIMAL else None
