"""The optimal assignor."""

from __future__ import annotations

from collections.abc import Sequence

from kohort.coordinator.placement.certificate import is_certainly_best
from kohort.coordinator.placement.choice import Choice
from kohort.coordinator.placement.exact import is_small, solve_exactly
from kohort.coordinator.placement.flow import Flows
from kohort.coordinator.placement.greedy import Greedy
from kohort.coordinator.placement.model import Group, Placement
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.racks import Racks
from kohort.coordinator.placement.score import Score, score
from kohort.coordinator.placement.shares import Shares
from kohort.coordinator.placement.spread import Spread
from kohort.coordinator.placement.standby_certificate import are_certainly_best
from kohort.coordinator.placement.standby_flow import move_least
from kohort.coordinator.placement.standbys import GreedyStandbys

__all__ = ["optimal"]


def optimal(group: Group) -> Placement:
    """Place tasks as well as can be. What comes first here counts most:

    1. Each task has one active member. Standbys are in processes other than the active one's and each other's, as
       many as asked or as processes allow.
    2. Of each subtopology, of all stateful tasks, and of all tasks, members have the floor or the ceiling of a fair
       share, the same for all.
    3. State stores are spread evenly over processes, in proportion to their members (`Spread`).
    4. Active tasks have the least to restore; among that, the fewest move.
    5. Standbys are in racks as different as possible (`Racks`), then evenly on members, then have the least to restore.

    1 and 2 are always kept. 3 is the least there is if all subtopologies that can't be shared out evenly have equally
    many state stores, and the restoring of 4 then is, too; with one member in each process, so are the moves. In small
    groups all of 3 and 4 is, always. Otherwise it is the best that was found. For 5, racks are the best for each task
    if there is one rack tag; the others are the best for these racks with up to 24 processes.

    A greedy placement that counting shows to be the best is taken as it is. Otherwise solvers look for better ones,
    which takes a while in large groups: do it in a process of its own, as they let no other thread run meanwhile.

    Args:
        group: what is placed, checked (`check`).
    """
    if not group.members:
        return Placement({})
    problem = Problem(group)
    active = _place_active(problem)
    return problem.placement(active, _place_standbys(problem, active))


def _place_active(problem: Problem) -> list[int]:
    """The member of each task."""
    shares = Shares(problem)
    spread = Spread(problem, shares)
    greedy = Greedy(problem, shares, spread)
    best = score(problem, spread, greedy.active), greedy.active
    if is_certainly_best(problem, shares, spread, best[0]):
        return greedy.active

    def better(choice: Choice) -> tuple[Score, list[int]]:
        active = choice.placement(problem, shares)
        return min(best, (score(problem, spread, active), active))

    flows = Flows(problem, shares)
    best = better(flows.free())
    if best[0].spread == spread.least and best[1] is not greedy.active:
        return best[1]  # nothing moves less, and stores happen to be even
    if is_small(problem) and (choice := solve_exactly(problem, shares, spread, best[0].spread)):
        best = better(choice)
    else:
        best = better(flows.even(spread) if spread.exact else flows.fixed(greedy.pattern))
    return best[1]


def _place_standbys(problem: Problem, active: Sequence[int]) -> dict[int, list[int]]:
    """The members with a copy of each stateful task; empty without standbys."""
    racks = Racks(problem)
    copies = GreedyStandbys(problem, active, racks).copies
    if are_certainly_best(problem, active, copies):
        return copies
    return move_least(problem, active, racks, copies)
