"""The log of share groups: a restart keeps all, and so does any order of records that compaction leaves."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kohort.coordinator.share.group import ShareGroup
from kohort.protocol.errors import ErrorCode
from tests.coordinator.share.driver import GROUP, Driver


def snapshot(group: ShareGroup | None) -> Any:
    """All that records say about a group."""
    if group is None:
        return None
    return (
        group.epoch,
        group.assignment_epoch,
        group.metadata_hash,
        group.assigned_at,
        group.states,
        {name: (member.metadata, member.current) for name, member in sorted(group.members.items())},
        {name: target for name, target in sorted(group.target.items()) if name in group.members},
    )


def run_at_random(random: Random, driver: Driver) -> None:
    member_id = random.choice(("m1", "m2", "m3"))
    group = driver.groups.get(GROUP)
    member = None if group is None else group.members.get(member_id)
    topics = random.sample(("a", "b", "c"), random.randint(1, 3))
    match random.randrange(10):
        case 0:
            driver.heartbeat(member_id, -1)
        case 1:
            driver.heartbeat(member_id, 0, *topics)
        case 2:
            driver.topic("c", driver.cluster.topics.get("c", 0) + 1)
        case 3:
            driver.wait(random.choice((1_000, 50_000)))
        case 4 if member is not None:
            driver.heartbeat(member_id, member.current.epoch, *topics)
        case _:
            driver.heartbeat(member_id, 0 if member is None else member.current.epoch, *(topics if not member else ()))
    if driver.asked:
        random.choice((driver.initialize, driver.fail_to_initialize))()


@pytest.mark.parametrize("seed", range(8))
def test_replaying_gives_the_state_that_ran(seed: int) -> None:
    random, driver = Random(seed), Driver(automatic=False)
    for _ in range(60):
        run_at_random(random, driver)
        live = snapshot(driver.groups.get(GROUP))
        fresh = driver.new_groups()
        for record in driver.records():
            fresh.replay(*record)
        assert snapshot(fresh.get(GROUP)) == live
        fresh.unload()


@pytest.mark.parametrize("seed", range(8))
def test_compaction_in_any_order_keeps_all(seed: int) -> None:
    random, driver = Random(seed), Driver(automatic=False)
    for _ in range(60):
        run_at_random(random, driver)
    latest = {key: (index, value) for index, (key, value) in enumerate(driver.log)}
    keep_tombstones = random.random() < 0.5
    kept = {key: value for key, (_, value) in latest.items() if keep_tombstones or value is not None}
    live = snapshot(driver.groups.get(GROUP))
    for _ in range(10):
        order = list(kept)
        random.shuffle(order)
        driver.log = [(key, kept[key]) for key in order]
        fresh = driver.new_groups()
        for record in driver.records():
            fresh.replay(*record)
        if driver.group.members:
            assert snapshot(fresh.get(GROUP)) == live
        fresh.unload()


def test_a_deleted_group_leaves_only_tombstones() -> None:
    driver = Driver()
    driver.settle("m", "a")
    driver.beat("m", -1)
    for record in driver.groups.delete(GROUP):
        driver.groups.replay(*record)

    assert driver.groups.get(GROUP) is None
    assert driver.refused("m", 1) == ErrorCode.GROUP_ID_NOT_FOUND
