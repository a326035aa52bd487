"""The sticky assignor, which is greedy."""

from __future__ import annotations

from kohort.coordinator.placement.active_greedy import GreedyActives
from kohort.coordinator.placement.fair_shares import FairShares
from kohort.coordinator.placement.model import Group, Placement
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.standby_greedy import GreedyStandbys
from kohort.coordinator.placement.standby_racks import Racks
from kohort.coordinator.placement.state_store_spread import StateStoreSpread


def sticky(group: Group) -> Placement:
    """Places tasks greedily: members keep what balance allows, and those with least get the rest.

    Every task has a member, standbys are in processes of their own, and shares are fair, exactly as with `optimal`. But
    more tasks may move than necessary, and state stores may be spread less evenly.

    Args:
        group: what is placed, checked.
    """
    if not group.members:
        return Placement({})
    problem = Problem(group)
    shares = FairShares(problem)
    active = GreedyActives(problem, shares, StateStoreSpread(problem, shares)).active
    return problem.placement(active, GreedyStandbys(problem, active, Racks(problem)).copies)
