"""What lower bounds prove of placements, and what they must not claim."""

from __future__ import annotations

from random import Random

import pytest

from kohort.coordinator.placement import Group, Member, SubtopologyTasks, TaskId, optimal, place_without_solver, sticky
from kohort.coordinator.placement.active_greedy import GreedyActives
from kohort.coordinator.placement.active_lower_bound import is_provably_best
from kohort.coordinator.placement.fair_shares import FairShares
from kohort.coordinator.placement.min_cost_flow import MinCostFlow
from kohort.coordinator.placement.problem import Problem
from kohort.coordinator.placement.score import score
from kohort.coordinator.placement.standby_lower_bound import are_standbys_provably_best
from kohort.coordinator.placement.state_store_spread import StateStoreSpread
from tests.coordinator.placement.changes import group, joined, moved, placed
from tests.coordinator.placement.groups import random_group
from tests.coordinator.placement.oracle import best, copy_cost


@pytest.fixture
def no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(network: MinCostFlow) -> None:
        raise AssertionError("a flow is solved")

    monkeypatch.setattr(MinCostFlow, "solve", fail)


@pytest.mark.usefixtures("no_solver")
def test_no_solver_is_asked_for_a_member_that_joins_a_process_of_many() -> None:
    before = placed(group(99, *[(50, 1), (50, 0)] * 10, per_process=25), sticky)
    after = joined(before, Member("m99", "p03"))
    assert (
        len(moved(after, optimal(after))) == 13
    )  # ten to who has joined, three to members with too few stateless ones


@pytest.mark.usefixtures("no_solver")
@pytest.mark.parametrize("standbys", [1, 2])
def test_no_solver_is_asked_for_the_standbys_of_a_member_that_joins(standbys: int) -> None:
    before = placed(group(99, *[(50, 1)] * 10, standbys=standbys), sticky)
    after = joined(before, Member("m99", "p99"))
    new = [task for task, names in optimal(after).standby.items() if "m99" in names]
    assert len(new) == 5 * standbys


def test_two_processes_may_both_restore_the_task_that_is_cheapest() -> None:
    """Which is less than what the two cheapest tasks cost."""
    t0, t1, t2, t3 = tasks = [TaskId("s0", n) for n in range(4)]
    kept = [{t1, t2, t3}, {t0, t2, t3}, {t1}, {t2}]
    four = Group(
        (SubtopologyTasks("s0", 4, 1),),
        tuple(
            Member(f"m{n}", f"p{n}", active=frozenset({task}), standby=frozenset(had))
            for n, (task, had) in enumerate(zip(tasks, kept, strict=True))
        ),
        standbys=2,
        ends={t0: 1, t1: 100, t2: 100, t3: 100},
    )
    dear = {0: [1, 2], 1: [2, 3], 2: [0, 3], 3: [0, 1]}
    cheap = {0: [2, 3], 1: [0, 2], 2: [1, 3], 3: [0, 1]}
    costs = [
        sum(copy_cost(four, tasks[task], four.members[member]) for task, members in each.items() for member in members)
        for each in (dear, cheap)
    ]
    assert costs == [101, 2]
    assert not are_standbys_provably_best(Problem(four), range(4), dear)
    assert are_standbys_provably_best(Problem(four), range(4), cheap)


def few_large_processes(random: Random) -> Group:
    """A group in which mostly one member is new, and the others have tasks and copies of tasks."""
    count = random.randint(3, 5)
    parts = tuple(SubtopologyTasks(f"s{n}", random.randint(1, 4), n and random.randint(0, 1)) for n in range(3))
    tasks = [TaskId(part.id, n) for part in parts for n in range(part.partitions)]
    old = count - (random.random() < 0.6)
    owner = {task: random.randrange(old) for task in tasks}
    members = tuple(
        Member(
            f"m{n}",
            f"p{n % 2}",
            active=frozenset(task for task in tasks if owner[task] == n),
            standby=frozenset(task for task in tasks if random.random() < 0.3),
        )
        for n in range(count)
    )
    return Group(parts, members)


def test_what_a_lower_bound_proves_is_the_best() -> None:
    accepted = 0
    for seed in range(120):
        group = few_large_processes(Random(seed))
        problem = Problem(group)
        shares = FairShares(problem)
        spread = StateStoreSpread(problem, shares)
        reached = score(problem, spread, GreedyActives(problem, shares, spread).active)
        if is_provably_best(problem, shares, spread, reached):
            accepted += 1
            assert reached[1:] == best(group)[1:], seed
    assert accepted > 80


def test_what_is_placed_without_a_solver_is_optimal() -> None:
    random = Random(7)
    groups = [random_group(random) for _ in range(500)]
    quick = [place_without_solver("optimal", each) for each in groups]
    assert all(found in (None, optimal(each)) for each, found in zip(groups, quick, strict=True))
    assert 100 < quick.count(None) < 400


@pytest.mark.usefixtures("no_solver")
def test_a_new_group_and_one_that_a_member_joins_need_no_solver() -> None:
    before = group(3, (6, 1), (6, 0), standbys=1)
    assert place_without_solver("optimal", before) is not None
    after = joined(placed(before, optimal), Member("m3", "p3"))
    assert place_without_solver("optimal", after) is not None


def test_nothing_is_placed_without_a_solver_by_an_assignor_that_is_unknown() -> None:
    assert place_without_solver("nonsense", group(2, (3, 1))) is None
