"""The greedy assignor."""

from __future__ import annotations

from kohort.coordinator.placement.greedy import Greedy
from kohort.coordinator.placement.model import Group, Placement
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.racks import Racks
from kohort.coordinator.placement.shares import Shares
from kohort.coordinator.placement.spread import Spread
from kohort.coordinator.placement.standbys import GreedyStandbys

__all__ = ["sticky"]


def sticky(group: Group) -> Placement:
    """Place tasks greedily: keep what may be kept within balance, give the rest to whoever has least.

    Every task has a member, standbys are in processes of their own, and shares are fair, exactly as with `optimal`. But
    more may move than would have to, and state stores may be shared less evenly.

    Args:
        group: what is placed, checked.
    """
    if not group.members:
        return Placement({})
    problem = Problem(group)
    shares = Shares(problem)
    active = Greedy(problem, shares, Spread(problem, shares)).active
    return problem.placement(active, GreedyStandbys(problem, active, Racks(problem)).copies)
