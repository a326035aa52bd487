"""Placement of tasks on members: a model of a group, assignors, and metrics of a placement.

A library of its own: it knows task ids, and nothing of coordinators, brokers or the wire.

    optimal_assignor, sticky_assignor    the assignors: who is asked in which order
    fair_shares, extra_tasks             balance: the floor of a share, and who gets one task more
    state_store_spread                   the spread of state stores over processes (KIP-262)
    problem, stickiness                  stickiness: what members had, and what restoring costs elsewhere
    standby_greedy, standby_flow         where standbys are placed
    standby_racks                        racks, which count for standbys
    tie_breaking                         who is preferred where balance and cost are equal
    active_greedy, active_flow, active_cp_sat   active tasks, from quick to exact; `min_cost_flow` solves flows
    shortest_paths, active_search        small flows, and small groups of active tasks, without OR-Tools
    active_lower_bound, standby_lower_bound     proofs that a greedy placement is the best, so that no solver runs
    outcome, what_if, in_words           placements side by side, of groups that are changed, and for people
    explanation                          why a task is where it is: what other places would cost
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kohort.coordinator.placement.checks import check
from kohort.coordinator.placement.model import Group, Member, Placement, SubtopologyTasks
from kohort.coordinator.placement.optimal_assignor import optimal, optimal_without_solver
from kohort.coordinator.placement.sticky_assignor import sticky
from kohort.extras import MissingExtraError
from kohort.streams.tasks import TaskId

__all__ = [
    "ASSIGNORS",
    "Assignor",
    "Group",
    "Member",
    "Placement",
    "SubtopologyTasks",
    "TaskId",
    "check",
    "optimal",
    "place",
    "place_without_solver",
    "sticky",
]

Assignor = Callable[[Group], Placement]
"""Places a group's tasks; equal groups get equal placements, whatever the order of their members."""

ASSIGNORS: Final[Mapping[str, Assignor]] = {"optimal": optimal, "sticky": sticky}
"""All assignors, by their names in configurations."""

_WITHOUT_SOLVER: Final[Mapping[str, Callable[[Group], Placement | None]]] = {
    "optimal": optimal_without_solver,
    "sticky": sticky,
}


def place(assignor: str, group: Group) -> Placement:
    """Places a group's tasks by the assignor of that name, or by `sticky` where `optimal` would need OR-Tools."""
    try:
        return ASSIGNORS[assignor](group)
    except MissingExtraError:
        return sticky(group)


def place_without_solver(assignor: str, group: Group) -> Placement | None:
    """Returns what `place` does, or None where that takes a solver, or there is no such assignor."""
    quick = _WITHOUT_SOLVER.get(assignor)
    return None if quick is None else quick(group)
