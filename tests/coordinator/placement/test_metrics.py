"""What a placement is worth, on placements made by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.placement.metrics import (
    Balance,
    Metrics,
    RackSpread,
    Restore,
    RestoreCosts,
    StateStores,
    measure,
)
from kohort.coordinator.placement.model import Group, Member, Placement, SubtopologyTasks
from kohort.streams.tasks import TaskId
from tests.coordinator.placement.groups import random_group
from tests.coordinator.placement.oracle import restore_cost

STATEFUL = SubtopologyTasks("0", 3, state_stores=2)
STATELESS = SubtopologyTasks("1", 2)
A, B, C = TaskId("0", 0), TaskId("0", 1), TaskId("0", 2)
X, Y = TaskId("1", 0), TaskId("1", 1)


def group(*members: Member, **settings: object) -> Group:
    return replace(Group((STATEFUL, STATELESS), members), **settings)  # type: ignore[arg-type]


def of(group: Group, active: dict[TaskId, str], standby: dict[TaskId, tuple[str, ...]] | None = None) -> Metrics:
    return measure(group, Placement(active, standby or {}))


# balance


def test_the_balance_of_each_subtopology_of_state_and_of_all() -> None:
    found = of(group(Member("m1"), Member("m2")), {A: "m1", B: "m1", C: "m1", X: "m2", Y: "m1"})
    assert found.subtopologies == {"0": Balance(3, 2, 0, 3), "1": Balance(2, 2, 1, 1)}
    assert (found.stateful, found.total) == (Balance(3, 2, 0, 3), Balance(5, 2, 1, 4))
    assert found.imbalance == 1


@pytest.mark.parametrize(
    ("tasks", "members", "least", "most", "imbalance"),
    [
        (7, 3, 2, 3, 0),  # floor and ceiling
        (6, 3, 2, 2, 0),
        (6, 3, 1, 3, 1),
        (6, 3, 0, 3, 2),  # the farthest counts
        (7, 3, 1, 3, 1),
        (7, 3, 0, 7, 4),
        (0, 3, 0, 0, 0),
        (0, 0, 0, 0, 0),
    ],
)
def test_imbalance_is_the_distance_to_the_fair_share(
    tasks: int, members: int, least: int, most: int, imbalance: int
) -> None:
    assert Balance(tasks, members, least, most).imbalance == imbalance


@given(st.lists(st.integers(0, 50), min_size=1))
def test_no_imbalance_is_floor_or_ceiling_for_everybody(counts: list[int]) -> None:
    fair = sum(counts) / len(counts)
    balance = Balance(sum(counts), len(counts), min(counts), max(counts))
    assert (balance.imbalance == 0) == all(abs(count - fair) < 1 for count in counts)


def test_state_stores_are_summed_by_process() -> None:
    members = Member("m1", "p"), Member("m2", "p"), Member("m3")
    found = of(group(*members), {A: "m1", B: "m2", C: "m3", X: "m3", Y: "m3"})
    assert found.state_stores == StateStores(2, 4, Fraction(0))  # the process with two members has twice as much
    assert of(group(*members), {A: "m1", B: "m3", C: "m3"}).state_stores == StateStores(2, 4, Fraction(4))
    assert of(group(Member("m1"), Member("m2")), {A: "m1", B: "m1"}).state_stores == StateStores(0, 4, Fraction(4))


def test_members_without_a_process_have_their_own() -> None:
    found = of(group(Member("m1"), Member("m2")), {A: "m1", B: "m2"}, {A: ("m2",), B: ("m1",)})
    assert found.state_stores.spread == 0
    assert found.standbys_placed == 2


def test_a_group_with_nobody_in_it() -> None:
    found = of(group(standbys=1), {})
    assert (found.unplaced, found.imbalance, found.state_stores.spread) == (5, 0, 0)
    assert (found.standbys_wanted, found.standbys_placed) == (3, 0)


# movement


def test_what_moves_is_what_had_another_owner() -> None:
    members = Member("m1", active=frozenset({A, B, X})), Member("m2", active=frozenset({Y}))
    found = of(group(*members), {A: "m1", B: "m2", C: "m2", X: "m2", Y: "m2"})
    assert (found.owned, found.moved, found.moved_stateful) == (4, 2, 1)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, Restore(1, 0, 2)),
        ({"ends": {A: 500}}, Restore(1, 500, 0)),
        ({"ends": {A: 0}}, Restore()),
        ({"ends": {A: 500}, "lags": {("p2", A): 20_000}}, Restore(1, 20_000, 0)),
        ({"ends": {A: 500}, "lags": {("p2", A): 10_000}}, Restore()),
        ({"lags": {("p1", A): 0}}, Restore(1, 0, 2)),
        ({"lags": {("p1", A): 70}}, Restore(1, 70, 0)),  # so long it is at least
        ({"lags": {("gone", A): 70}}, Restore(1, 0, 2)),
        ({"ends": {A: 50}, "lags": {("p1", A): 70}}, Restore(1, 70, 0)),
    ],
)
def test_what_somebody_without_the_task_restores(settings: dict[str, object], expected: Restore) -> None:
    members = Member("m1", "p1", active=frozenset({A})), Member("m2", "p2")
    assert RestoreCosts(group(*members, **settings)).of(A, "m2") == expected


@pytest.mark.parametrize(
    ("had", "settings", "expected"),
    [
        ({"active": {A}}, {}, Restore()),
        ({"active": {A}}, {"lags": {("p", A): 20_000}}, Restore()),
        ({"standby": {A}}, {}, Restore()),
        ({"standby": {A}}, {"lags": {("p", A): 20_000}}, Restore(1, 20_000, 0)),
    ],
)
def test_what_somebody_who_had_it_restores(
    had: dict[str, set[TaskId]], settings: dict[str, object], expected: Restore
) -> None:
    member = Member("m1", "p", **{name: frozenset(tasks) for name, tasks in had.items()})  # type: ignore[arg-type]
    assert RestoreCosts(group(member, **settings)).of(A, "m1") == expected


def test_members_of_a_process_share_its_disk() -> None:
    members = Member("m1", "p", active=frozenset({A})), Member("m2", "p"), Member("m3", "q")
    costs = RestoreCosts(group(*members))
    assert costs.of(A, "m2") == Restore()
    assert costs.of(A, "m3") == Restore(1, 0, 2)


def test_stateless_tasks_restore_nothing() -> None:
    assert RestoreCosts(group(Member("m1"), ends={X: 5})).of(X, "m1") == Restore()


def test_what_is_restored_is_summed_for_active_tasks_and_for_standbys() -> None:
    members = Member("m1", active=frozenset({A})), Member("m2"), Member("m3")
    found = of(
        group(*members, standbys=1, ends={B: 70}),
        {A: "m1", B: "m2", C: "m3", X: "m1", Y: "m2"},
        {A: ("m2",), B: ("m1",), C: ("m1",)},
    )
    assert found.restore == Restore(2, 70, 2)
    assert found.standby_restore == Restore(3, 70, 4)


# standbys


def test_a_standby_beside_another_copy_counts_for_nothing() -> None:
    members = Member("m1", "p"), Member("m2", "p"), Member("m3", "q"), Member("m4", "q")
    found = of(
        group(*members, standbys=2),
        {A: "m1", B: "m3", C: "m4"},
        {A: ("m2", "m3"), B: ("m1", "m2"), C: ("m1", "m2")},
    )
    assert (found.standbys_wanted, found.standbys_placed) == (6, 3)


def zoned(name: str, zone: str | None) -> Member:
    return Member(name, tags={} if zone is None else {"zone": zone})


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        (("a", "b", "c"), RackSpread(2, 2)),
        (("a", "b", "b"), RackSpread(1, 1)),
        (("a", "a", "b"), RackSpread(1, 1)),
        (("a", "a", "a"), RackSpread(0, 0)),
        (("a", None, "b"), RackSpread(2, 2)),
        ((None, None, None), RackSpread(0, 0)),
    ],
)
def test_standbys_in_zones_of_their_own(zones: tuple[str | None, ...], expected: RackSpread) -> None:
    members = [zoned(f"m{number}", zone) for number, zone in enumerate(zones)]
    found = of(group(*members, standbys=2, rack_tags=("zone",)), {A: "m0"}, {A: ("m1", "m2")})
    assert found.racks == {"zone": expected}


def test_a_zone_that_was_left_out_was_possible() -> None:
    members = zoned("m1", "a"), zoned("m2", "a"), zoned("m3", "b")
    found = of(group(*members, standbys=1, rack_tags=("zone", "rack")), {A: "m1"}, {A: ("m2",)})
    assert found.racks == {"zone": RackSpread(0, 1), "rack": RackSpread(0, 0)}


def test_costs_are_those_that_assignors_count_with() -> None:
    """The oracle's, which `optimal` is held against."""
    for seed in range(150):
        random = random_group(Random(seed))
        costs = RestoreCosts(random)
        for subtopology in random.subtopologies:
            for task in (TaskId(subtopology.id, partition) for partition in range(subtopology.partitions)):
                for member in random.members:
                    cost = costs.of(task, member.id)
                    assert cost.records + cost.stores == restore_cost(random, task, member), (seed, task, member.id)
