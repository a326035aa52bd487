"""Groups of our members, their leader and our coordinator in virtual time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.client.streams.transitions import State
from kohort.streams.tasks import Role
from tests.client.streams.classic.simulated import SimulatedGroup
from tests.client.streams.simulated_tasks import ALL

REBALANCES = {"Assigned", "Revoked", "Lost", "RolesChanged"}


@pytest.mark.parametrize("seed", [0, 1, 9, 47])
def test_members_come_and_go(seed: int) -> None:
    world = SimulatedGroup(seed, num_standby_replicas=seed % 2, max_warmup_replicas=seed % 3)
    for _ in range(3):
        world.start()
        world.run(world.random.randrange(20_000))
    world.comes_to_rest()
    world.losses = 0.1
    for _ in range(3):
        leaver = world.random.choice(world.applications)
        if world.random.random() < 0.5:
            leaver.member.stop(world.now)
        else:
            leaver.has.clear()
            leaver.closing.clear()
            leaver.member.quit(world.now)
        world.start()
        world.run(world.random.randrange(20_000))
    world.comes_to_rest()
    assert world.counts["Revoked"]


def test_who_dies_is_replaced_after_its_session() -> None:
    world = SimulatedGroup(3, num_standby_replicas=1)
    for _ in range(3):
        world.start()
    world.comes_to_rest()
    world.counts.clear()
    world.applications[0].die()
    world.comes_to_rest()
    assert not world.counts["Lost"]


@pytest.mark.parametrize("seed", [0, 9])
def test_members_that_are_thrown_out_come_back(seed: int) -> None:
    world = SimulatedGroup(seed, session_timeout_ms=6_000, num_standby_replicas=1)
    world.losses = 0.8
    for _ in range(4):
        world.start()
    world.run(240_000)
    world.comes_to_rest()
    assert world.counts["Lost"]


def test_who_is_slow_to_close_keeps_its_tasks_until_then_and_the_others_run_theirs() -> None:
    world = SimulatedGroup(1, max_warmup_replicas=0)
    world.losses = 0.0
    first = world.start()
    world.run(10_000)
    world.close_ms = 100_000
    second = world.start()
    world.run(50_000)
    assert len([task for task, role in first.has.items() if role is Role.ACTIVE]) == 8
    assert not second.has
    world.close_ms = 0
    world.run(60_000)
    world.comes_to_rest()
    assert not world.counts["Lost"]


def test_a_static_member_comes_back_to_its_tasks() -> None:
    world = SimulatedGroup(1, max_warmup_replicas=0)
    first, second = world.start("a"), world.start("b")
    world.comes_to_rest()
    had, generation = dict(first.has), second.member.epoch
    first.member.stop(world.now)
    world.run(3_000)
    assert first.member.state is State.LEFT
    world.counts.clear()
    again = world.start("a")
    world.comes_to_rest()
    assert again.has == had
    assert world.counts["Revoked"] == 0
    assert second.member.epoch >= generation


@pytest.mark.parametrize("latest", [1, 2])
@pytest.mark.parametrize("seed", range(2))
def test_static_members_go_back_to_an_older_release_one_by_one(seed: int, latest: int) -> None:
    """Who comes back finds an assignment that it can't read, as the group doesn't rebalance for it."""
    world = SimulatedGroup(seed, max_warmup_replicas=0)
    world.start("a")
    world.run(5_000)
    world.start("b")
    world.comes_to_rest()
    for instance_id in ("ab", "ba")[seed]:
        (old,) = [one for one in world.applications if one.member.settings.instance_id == instance_id]
        old.die()
        world.start(instance_id, latest=latest)
        world.comes_to_rest(14_000)  # before any session is over


@pytest.mark.parametrize("latest", [1, 2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_who_cant_be_read_any_more_closes_its_tasks_and_others_run_them_after_that(seed: int, latest: int) -> None:
    world = SimulatedGroup(seed, max_warmup_replicas=0)
    world.in_a_process = 1
    for _ in range(3):
        world.start(latest=latest)
    world.comes_to_rest()
    world.losses, world.close_ms = 0.3, 4_000
    odd, generation = world.applications[seed], world.applications[0].member.epoch
    odd.garbled = True
    odd.member.rebalance("the test wants it")
    world.run(20_000)
    world.losses = 0.0
    world.run(60_000)
    running = [task for one in world.applications for task, role in one.has.items() if role is Role.ACTIVE]
    assert (sorted(running), odd.has) == (sorted(ALL), {})
    assert world.applications[0].member.epoch < generation + 12, "the group is at rest"
    odd.garbled = False
    odd.member.rebalance("the test wants it")
    world.comes_to_rest()
    assert odd.has


@pytest.mark.parametrize("latest", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("quits", [False, True])
def test_all_stop_if_a_member_asks_for_it_and_leaves(seed: int, latest: int, quits: bool) -> None:
    world = SimulatedGroup(seed, max_warmup_replicas=0)
    for _ in range(4):
        world.start(latest=latest)
    world.comes_to_rest()
    asking = world.applications[seed]
    asking.member.shut_application_down()
    if quits:
        asking.has.clear()
        asking.closing.clear()
        asking.member.quit(world.now)
    else:
        asking.member.stop(world.now)
    by = asking.member.leave_by
    while not asking.member.ended:
        world.run(1_000)
    assert world.now <= by
    world.run(30_000)
    assert not world.applications
    assert world.counts["ShutdownRequested"] == 3, "each of the others"


def test_a_restart_of_the_coordinator_moves_nothing() -> None:
    world = SimulatedGroup(1)
    for _ in range(3):
        world.start()
    world.comes_to_rest()
    had = [dict(one.has) for one in world.applications]
    world.counts.clear()
    world.coordinator.driver.restart()
    world.run(30_000)
    assert [one.has for one in world.applications] == had
    assert not world.counts.keys() & REBALANCES


def test_two_members_at_rest_send_heartbeats_alone() -> None:
    world = SimulatedGroup(1, heartbeat_interval_ms=5_000)
    world.start()
    world.start()
    world.comes_to_rest()
    world.counts.clear()
    world.run(60_000)
    assert world.counts == {"HeartbeatRequest": 24}


def test_all_stop_when_one_asks_for_it() -> None:
    world = SimulatedGroup(5)
    for _ in range(3):
        world.start()
    world.comes_to_rest()
    world.applications[1].member.shut_application_down()
    world.run(60_000)
    assert world.applications == []


@pytest.mark.parametrize("older", [1, 2])
def test_a_rolling_bounce_from_an_older_version_and_back_stops_nothing(older: int) -> None:
    world = SimulatedGroup(older, max_warmup_replicas=0)
    world.in_a_process = 1
    for _ in range(3):
        world.start(latest=older)
    world.comes_to_rest()
    for latest in (3, older):
        for _ in range(3):
            world.losses = 0.05
            world.applications[0].member.stop(world.now)
            world.start(latest=latest)
            world.run(world.random.randrange(5_000, 30_000))
        world.comes_to_rest()
        assert {one.member.version for one in world.applications} == {latest}
    assert not world.counts["Lost"]


@settings(max_examples=20)
@given(seed=st.integers(0, 1 << 32), standbys=st.integers(0, 1), warmups=st.integers(0, 2))
def test_whatever_happens_no_task_has_two_owners_and_all_have_one_in_the_end(
    seed: int, standbys: int, warmups: int
) -> None:
    world = SimulatedGroup(seed, num_standby_replicas=standbys, max_warmup_replicas=warmups)
    world.losses, world.in_a_process = world.random.choice((0.0, 0.1, 0.3)), 1
    world.start(latest=world.random.choice((1, 2, 3)))
    for _ in range(4):
        world.run(world.random.randrange(8_000))
        match world.random.randrange(4):
            case 0 if len(world.applications) > 1:
                world.random.choice(world.applications).die()
            case 1 if len(world.applications) > 1:
                world.random.choice(world.applications).member.stop(world.now)
            case _:
                world.start(latest=world.random.choice((1, 2, 3)))
    world.comes_to_rest()
