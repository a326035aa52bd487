from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from kohort.coordinator.placement import (
    ASSIGNORS,
    Assignor,
    Group,
    Member,
    Placement,
    SubtopologyTasks,
    TaskId,
    optimal,
)
from tests.coordinator.placement.changes import after, group, joined, moved, placed, without
from tests.coordinator.placement.invariants import check_invariants
from tests.coordinator.placement.oracle import copy_cost, restore_cost, worth

TOPOLOGY = (40, 1), (40, 0), (25, 2), (13, 0)


@pytest.fixture(params=sorted(ASSIGNORS))
def assign(request: pytest.FixtureRequest) -> Assignor:
    return ASSIGNORS[request.param]


def restored(group: Group, placement: Placement) -> int:
    return worth(group, placement.active).restore


def stores_moved(group: Group, placement: Placement) -> int:
    """State stores of standbys that are restored."""
    members = {member.id: member for member in group.members}
    return sum(copy_cost(group, task, members[name]) for task, names in placement.standby.items() for name in names)


@pytest.mark.parametrize("standbys", [0, 1, 2])
@pytest.mark.parametrize("per_process", [1, 4])
def test_nothing_moves_if_nothing_changed(assign: Assignor, standbys: int, per_process: int) -> None:
    before = placed(group(12, *TOPOLOGY, per_process=per_process, standbys=standbys), assign)
    placement = assign(before)
    assert not moved(before, placement)
    assert after(before, placement) == before


@pytest.mark.parametrize("standbys", [0, 1, 2])
def test_one_who_joins_gets_a_fair_share_and_nothing_else_moves(assign: Assignor, standbys: int) -> None:
    before = joined(placed(group(10, (100, 1), (100, 0), standbys=standbys), assign), Member("new", "new"))
    placement = assign(before)
    check_invariants(before, placement)
    tasks = moved(before, placement)
    assert {placement.active[task] for task in tasks} == {"new"}
    assert len(tasks) == 18  # of 200 tasks on 11 members
    assert restored(before, placement) == 9
    if assign is optimal:
        assert stores_moved(before, placement) == 9 * standbys


@pytest.mark.parametrize("per_process", [1, 2])
def test_what_a_member_had_that_left_is_shared_and_nothing_else_moves(assign: Assignor, per_process: int) -> None:
    full = placed(group(10, *TOPOLOGY, per_process=per_process), assign)
    (had,) = (member.active for member in full.members if member.id == "m03")
    before = without(full, ["m03"])
    placement = assign(before)
    check_invariants(before, placement)
    if assign is optimal and per_process == 1:
        assert had <= moved(before, placement)
    assert restored(before, optimal(before)) <= restored(before, placement)


def test_when_a_process_crashes_its_tasks_go_where_their_standbys_are(assign: Assignor) -> None:
    before = without(placed(group(12, (96, 1), per_process=3, standbys=1), assign), ["p01"])
    placement = assign(before)
    check_invariants(before, placement)
    assert len(moved(before, placement)) >= 24
    if assign is optimal:
        assert restored(before, placement) == 0


def test_tasks_of_partitions_that_are_new_go_to_who_has_least(assign: Assignor) -> None:
    before = placed(group(4, (10, 1), (10, 0)), assign)
    grown = replace(before, subtopologies=(SubtopologyTasks("s0", 14, 1), SubtopologyTasks("s1", 10)))
    placement = assign(grown)
    check_invariants(grown, placement)
    assert moved(grown, placement) == {TaskId("s0", partition) for partition in range(10, 14)}


def test_tasks_that_are_gone_are_forgotten(assign: Assignor) -> None:
    before = placed(group(4, (12, 1), (8, 0)), assign)
    shrunk = replace(before, subtopologies=(SubtopologyTasks("s0", 8, 1),))
    placement = assign(shrunk)
    check_invariants(shrunk, placement)
    assert len(placement.active) == 8


def test_who_has_state_on_disk_gets_its_tasks_back(assign: Assignor) -> None:
    full = placed(group(6, (36, 1)), assign)
    (back,) = (member for member in full.members if member.id == "m02")
    without_it = placed(without(full, ["m02"]), assign)
    returned = joined(without_it, Member("m02-again", "p02"))
    known = replace(
        returned, lags={("p02", task): 500 for task in back.active}, ends=dict.fromkeys(back.active, 90_000)
    )
    placement = assign(known)
    check_invariants(known, placement)
    assert {task for task, owner in placement.active.items() if owner == "m02-again"} == back.active
    assert restored(known, placement) == 0


def test_state_that_lags_is_better_than_none_and_worse_than_some_that_lags_less(assign: Assignor) -> None:
    task = TaskId("s0", 0)
    far = Group(
        (SubtopologyTasks("s0", 1, 1),),
        tuple(Member(f"m{n}", f"p{n}") for n in range(4)),
        lags={("p1", task): 50_000, ("p2", task): 20_000},
        ends={task: 100_000},
    )
    assert assign(far).active == {task: "m2"}


def test_a_standby_that_lags_has_not_caught_up(assign: Assignor) -> None:
    task = TaskId("s0", 0)
    standby = frozenset({task})
    lagging = Group(
        (SubtopologyTasks("s0", 1, 1),),
        (Member("m0", "p0", standby=standby), Member("m1", "p1", standby=standby)),
        lags={("p0", task): 20_000},
        ends={task: 100_000},
    )
    assert assign(lagging).active == {task: "m1"}


def test_members_of_a_process_take_over_from_each_other_with_nothing_to_restore(assign: Assignor) -> None:
    before = joined(placed(group(4, (20, 1), per_process=2), assign), Member("m9", "p00"), Member("m8", "p01"))
    placement = assign(before)
    check_invariants(before, placement)
    assert restored(before, placement) == 0


def test_a_task_that_two_had_stays_with_one_of_them(assign: Assignor) -> None:
    both = frozenset(TaskId("s0", n) for n in range(4))
    before = Group((SubtopologyTasks("s0", 4, 1),), tuple(Member(f"m{n}", f"p{n}", active=both) for n in range(2)))
    placement = assign(before)
    assert not moved(before, placement)
    assert Counter(placement.active.values()) == {"m0": 2, "m1": 2}


def test_groups_that_are_small_or_empty(assign: Assignor) -> None:
    assert assign(group(0, (3, 1), standbys=1)) == Placement({})
    assert assign(group(3)) == Placement({})
    assert assign(group(3, (0, 1), (0, 0), standbys=1)) == Placement({})
    few = group(5, (2, 1), (1, 0), standbys=3)
    check_invariants(few, assign(few))
    alone = group(1, (4, 1), (3, 0), standbys=2)
    assert set(assign(alone).active.values()) == {"m00"} and not assign(alone).standby


def test_members_of_no_process_are_alone(assign: Assignor) -> None:
    loners = Group((SubtopologyTasks("s0", 6, 1),), tuple(Member(f"m{n}") for n in range(3)), standbys=2)
    placement = assign(loners)
    check_invariants(loners, placement)
    assert all(len(holders) == 2 for holders in placement.standby.values())


def test_costs_of_any_size(assign: Assignor) -> None:
    tasks = [TaskId("s0", n) for n in range(9)]
    huge = group(4, (9, 1), standbys=1, per_process=2)
    huge = replace(
        huge,
        members=tuple(replace(member, active=frozenset(tasks)) for member in huge.members),
        ends={task: 2**62 + n for n, task in enumerate(tasks)},
        lags={("p01", task): 2**61 for task in tasks},
    )
    check_invariants(huge, assign(huge))
    emptied = replace(huge, members=tuple(replace(member, active=frozenset()) for member in huge.members))
    placement = assign(emptied)
    check_invariants(emptied, placement)
    lags = [
        restore_cost(emptied, task, next(m for m in emptied.members if m.id == name))
        for task, name in placement.active.items()
    ]
    assert lags.count(2**61) >= 4
