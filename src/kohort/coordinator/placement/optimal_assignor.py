"""The optimal assignor."""

from __future__ import annotations

from collections.abc import Sequence

from kohort.coordinator.placement.active_cp_sat import is_small, solve_with_cp_sat
from kohort.coordinator.placement.active_flow import ActiveFlows
from kohort.coordinator.placement.active_greedy import GreedyActives
from kohort.coordinator.placement.active_lower_bound import is_provably_best
from kohort.coordinator.placement.active_search import solve_by_search
from kohort.coordinator.placement.active_solution import ActiveSolution
from kohort.coordinator.placement.fair_shares import FairShares
from kohort.coordinator.placement.model import Group, Placement
from kohort.coordinator.placement.or_tools import is_installed, require_or_tools
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.score import Score, score
from kohort.coordinator.placement.standby_flow import solve_standby_flow
from kohort.coordinator.placement.standby_greedy import GreedyStandbys
from kohort.coordinator.placement.standby_lower_bound import are_standbys_provably_best
from kohort.coordinator.placement.standby_racks import Racks
from kohort.coordinator.placement.state_store_spread import StateStoreSpread


def optimal(group: Group) -> Placement:
    """Places tasks as well as possible. What comes first here counts most:

    1. Each task has one active member. Standbys are in processes other than the active one's and each other's, as
       many as asked or as processes allow.
    2. Of each subtopology, of all stateful tasks, and of all tasks, members have the floor or the ceiling of a fair
       share, the same for all.
    3. State stores are spread evenly over processes, in proportion to their members (`StateStoreSpread`).
    4. Active tasks have the least to restore; among that, the fewest move.
    5. Standbys are in racks as different as possible (`Racks`), then evenly on members, then have the least to restore.

    1 and 2 hold always. 3 is optimal if all subtopologies with extra tasks have equally many state stores, and so is
    then the restoring of 4; with one member in each process, so are the moves. In small groups all of 3 and 4 is always
    optimal. Otherwise it is the best that was found. For 5, racks are optimal for each task if there is one rack tag;
    the rest is optimal for these racks with up to 24 processes.

    A greedy placement that a lower bound proves to be the best is taken as it is. Otherwise solvers look for better
    ones, which takes a while in large groups: call it in a process of its own, since they block all other threads.

    Args:
        group: what is placed, checked (`check`).

    Raises:
        MissingExtraError: OR-Tools isn't installed, and the group is too large to do without.
    """
    if not group.members:
        return Placement({})
    problem = Problem(group)
    active = _place_active(problem)
    return problem.placement(active, _place_standbys(problem, active))


def optimal_without_solver(group: Group) -> Placement | None:
    """Returns what `optimal` does, where greedy placements are proved to be the best; None where solvers have to look.

    Takes 10 to 30 µs a task and member in small groups, and never needs OR-Tools.
    """
    if not group.members:
        return Placement({})
    problem = Problem(group)
    shares = FairShares(problem)
    spread = StateStoreSpread(problem, shares)
    active = GreedyActives(problem, shares, spread).active
    if not is_provably_best(problem, shares, spread, score(problem, spread, active)):
        return None
    copies = GreedyStandbys(problem, active, Racks(problem)).copies
    return problem.placement(active, copies) if are_standbys_provably_best(problem, active, copies) else None


def _place_active(problem: Problem) -> list[int]:
    shares = FairShares(problem)
    spread = StateStoreSpread(problem, shares)
    greedy = GreedyActives(problem, shares, spread)
    best = score(problem, spread, greedy.active), greedy.active
    if is_provably_best(problem, shares, spread, best[0]):
        return greedy.active

    def better(solution: ActiveSolution) -> tuple[Score, list[int]]:
        active = solution.placement(problem, shares)
        return min(best, (score(problem, spread, active), active))

    flows = ActiveFlows(problem, shares)
    best = better(flows.ignoring_stores())
    if best[0].spread == spread.least and best[1] is not greedy.active:
        return best[1]  # nothing moves less, and the spread is the least
    solution = None
    if is_small(problem):
        if is_installed():
            solution = solve_with_cp_sat(problem, shares, spread, best[0].spread)
        elif (solution := solve_by_search(problem, shares, spread, flows)) is None:
            require_or_tools()
    if solution is None:
        solution = flows.with_least_spread(spread) if spread.exact else flows.with_extra_tasks(greedy.extra_tasks)
    return better(solution)[1]


def _place_standbys(problem: Problem, active: Sequence[int]) -> dict[int, list[int]]:
    """The members with a standby of each stateful task; empty without standbys."""
    racks = Racks(problem)
    copies = GreedyStandbys(problem, active, racks).copies
    if are_standbys_provably_best(problem, active, copies):
        return copies
    return solve_standby_flow(problem, active, racks, copies)
