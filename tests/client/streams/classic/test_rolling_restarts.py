"""Rolling restarts from each version to each other and back: no task has two owners, and the group never stops.

Members crash, leave, or are static and come back; the world checks owners after each event.
"""

from __future__ import annotations

import itertools

import pytest

from kohort.client.streams.classic.led_group import LeaderSettings

from .world import TASKS, Disk, Process, World

PAIRS = list(itertools.product((1, 2, 3), repeat=2))


def settled(world: World) -> None:
    """Lets the group come to rest, and checks that each task is run, evenly, and which version is written."""
    world.rebalances = 0
    world.run()
    processes = list(world.members.values())
    assert all(process.alive and not process.closing for process in processes)
    assert set().union(*(process.owned() for process in processes)) == TASKS
    counts = [len(process.owned()) for process in processes]
    assert max(counts) - min(counts) <= 1
    newest = min(process.latest for process in processes)
    if any(process.instance_id and process.version < newest for process in processes):
        # Static members have come back without a rebalance. The next one shows that all know a newer version.
        processes[0].rebalance()
        world.run()
    assert min(process.version for process in processes) == newest


def restart(world: World, process: Process, latest: int) -> Process:
    """Restarts a member as another release, on the same disk."""
    crash = world.random.random() < 0.5
    world.stop(process, crash=crash)
    world.run(until=world.now + world.random.uniform(0, 15))
    return world.start(latest, process.disk, process.instance_id)


def rolling_restarts(
    seed: int, before: int, after: int, *, at_rest: bool, static: bool, standbys: int, members: int = 3
) -> None:
    settings = LeaderSettings(num_standby_replicas=standbys, acceptable_recovery_lag=10)
    world = World(f"{seed} {before} {after} {at_rest} {static} {standbys}", settings)
    processes = [world.start(before, Disk(), f"static-{i}" if static else None) for i in range(members)]
    settled(world)
    for latest in (after, before):
        for position in world.random.sample(range(members), members):
            processes[position] = restart(world, processes[position], latest)
            if at_rest:
                settled(world)
            else:
                world.rebalances = 0
                world.run(until=world.now + world.random.uniform(0, 30))
        settled(world)


def restarts_with_odd_members(seed: int, before: int, after: int, *, static: bool) -> None:
    """Members that run tasks write what their leader can't read, or stay too new for it, and are mended in the end."""
    world = World(f"odd {seed} {before} {after} {static}", LeaderSettings(acceptable_recovery_lag=10))
    processes = [world.start(before, Disk(), f"static-{i}" if static else None) for i in range(4)]
    settled(world)
    for latest in (after, before):
        for position in world.random.sample(range(len(processes)), len(processes)):
            processes[position] = restart(world, processes[position], latest)
            odd = world.random.choice(processes)
            odd.garbled = not (stubborn := world.random.random() < 0.5)
            odd.stubborn = stubborn
            odd.rebalance()
            world.rebalances = 0
            world.run(until=world.now + world.random.uniform(0, 30))
        world.rebalances = 0
        world.run()
        others = [process for process in processes if not (process.garbled or process.stubborn)]
        owned = set().union(*(process.owned() for process in world.members.values()))
        assert owned == (TASKS if others else owned), "odd members hold nobody up"
        for process in processes:
            process.garbled = process.stubborn = False
            process.rebalance()
        settled(world)


@pytest.mark.parametrize(("before", "after"), PAIRS)
@pytest.mark.parametrize("static", [False, True])
def test_members_that_cant_be_read_or_stay_too_new_keep_their_tasks_until_they_have_closed_them(
    before: int, after: int, static: bool
) -> None:
    for seed in range(3):
        restarts_with_odd_members(seed, before, after, static=static)


@pytest.mark.parametrize(("before", "after"), PAIRS)
@pytest.mark.parametrize("at_rest", [True, False])
def test_restarts_over_versions(before: int, after: int, at_rest: bool) -> None:
    rolling_restarts(0, before, after, at_rest=at_rest, static=False, standbys=0)


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_static_members_restart_over_versions(before: int, after: int) -> None:
    rolling_restarts(0, before, after, at_rest=False, static=True, standbys=1)


@pytest.mark.long
@pytest.mark.parametrize(("before", "after"), PAIRS)
@pytest.mark.parametrize("seed", range(6))
def test_many_restarts_over_versions(before: int, after: int, seed: int) -> None:
    for at_rest, static, standbys in itertools.product((True, False), (True, False), (0, 1)):
        rolling_restarts(seed, before, after, at_rest=at_rest, static=static, standbys=standbys, members=3 + seed % 3)
