"""Other places of tasks: what they cost is what the metrics of such a placement say."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.coordinator.placement import Group, Member, Placement, SubtopologyTasks, TaskId, sticky
from kohort.coordinator.placement.explanation import NOTHING, Alternative, Explanation, Share
from kohort.coordinator.placement.metrics import Restore, measure, process_of
from kohort.coordinator.placement.what_if import after_placement
from tests.coordinator.placement.groups import random_group

COUNT = SubtopologyTasks("count", 4, state_stores=2)
TASKS = [TaskId("count", partition) for partition in range(4)]


def moved(group: Group, placement: Placement, task: TaskId, to: Alternative) -> Placement:
    """The placement with the task there."""
    owner = placement.active[task]
    active = {**placement.active, task: to.member}
    standby = dict(placement.standby)
    changes = [(task, owner, to.member)]
    if to.instead is not None:
        active[to.instead] = owner
        changes.append((to.instead, to.member, owner))
    processes = {member.id: process_of(member) for member in group.members}
    for each, source, target in changes:
        if each in standby:
            standby[each] = tuple(source if processes[name] == processes[target] else name for name in standby[each])
    return Placement(active, standby)


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_cost_of_a_place_is_what_metrics_differ_by(random: Random) -> None:
    before = random_group(random)
    group = replace(after_placement(before, sticky(before)), lags=before.lags)
    explanation = Explanation(group)
    now = measure(group, explanation.placement)
    for task in explanation.tasks():
        places = explanation.alternatives(task)
        assert {each.member for each in places} == {each.id for each in group.members} - {
            explanation.placement.active[task]
        }
        assert explanation.best(task) == (places[0] if places else None)
        for each in places:
            then = measure(group, moved(group, explanation.placement, task, each))
            assert each.cost.spread == then.state_stores.spread - now.state_stores.spread
            assert each.cost.restore == then.restore
            assert each.cost.moves == then.moved
            assert each.cost.unbalanced >= 0 or now.imbalance
            shared = (sum(of.possible - of.apart for of in metrics.racks.values()) for metrics in (then, now))
            assert each.cost.together == next(shared) - next(shared)
            if not now.imbalance:
                assert (each.cost.unbalanced > 0) == (then.imbalance > 0)


def test_a_member_that_is_new_would_be_better_than_one_that_has_all() -> None:
    explanation = Explanation(Group((COUNT,), (Member("full", active=frozenset(TASKS)), Member("new"))))
    best = explanation.best(TASKS[0])
    assert best is not None
    assert (best.member, best.instead) == ("new", None)
    assert best.cost.unbalanced < 0
    assert best.cost.rank < NOTHING.rank
    assert explanation.shares("full", TASKS[0])[0] == Share("count", False, 4, 4, 2, 2)


def test_a_standby_changes_places_with_its_task() -> None:
    one = Member("one", active=frozenset(TASKS[:2]), standby=frozenset(TASKS[2:]))
    two = Member("two", active=frozenset(TASKS[2:]), standby=frozenset(TASKS[:2]))
    explanation = Explanation(Group((COUNT,), (one, two), standbys=1, ends=dict.fromkeys(TASKS, 70)))
    (place,) = explanation.alternatives(TASKS[0])
    assert place.standby
    assert place.instead in TASKS[2:]
    assert place.cost == (0, Fraction(0), Restore(), 2, 0)


def test_a_task_that_nobody_runs_has_places() -> None:
    explanation = Explanation(Group((COUNT,), (Member("one"),), ends=dict.fromkeys(TASKS, 70)))
    (place,) = explanation.alternatives(TASKS[0])
    assert (place.member, place.instead, place.cost.restore) == ("one", None, Restore(1, 70, 0))
    assert explanation.copies(TASKS[0]) == ()


def test_a_group_of_nobody_has_no_places() -> None:
    assert Explanation(Group((COUNT,), ())).best(TASKS[0]) is None
