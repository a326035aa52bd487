"""The log of the share coordinator: a restart keeps all, what is redundant can go, cold partitions don't hold it."""

from __future__ import annotations

from random import Random

import pytest

from kohort.coordinator.share_state import SharePartitionKey, ShareStateSettings, StateBatch
from kohort.protocol.stored.share_snapshot import ShareSnapshotKey, ShareSnapshotValue
from tests.coordinator.share_state.runner import KEY, TOPIC, Runner

KEYS = [SharePartitionKey(group_id, TOPIC, partition) for group_id in ("g", "h") for partition in range(3)]


def run_at_random(random: Random, runner: Runner, steps: int) -> None:
    for _ in range(steps):
        key = random.choice(KEYS)
        match random.randrange(12):
            case 0:
                runner.initialize(random.randrange(4), random.choice((-1, 0, 20)), key)
            case 1:
                runner.read(random.randrange(3), key)
            case 2:
                runner.delete(key)
            case 3:
                runner.now += 200
                runner.perform(runner.shard.snapshot_cold(runner.now))
            case _:
                first = random.randrange(50)
                batch = StateBatch(first, first + random.randrange(9), random.choice((0, 2, 4)), random.randint(1, 3))
                runner.write(batch, state_epoch=-1, leader_epoch=-1, start_offset=random.choice((-1, 3)), key=key)


@pytest.mark.parametrize("seed", range(10))
def test_a_restart_keeps_all_also_after_pruning(seed: int) -> None:
    random = Random(seed)
    runner = Runner(ShareStateSettings(3, 300))
    for _ in range(20):
        run_at_random(random, runner, 20)
        for first in (0, runner.shard.redundant_before()):
            replayed = runner.replayed(first)
            assert {key: replayed.get(key) for key in KEYS} == {key: runner.shard.get(key) for key in KEYS}
            assert max(first, replayed.redundant_before()) == runner.shard.redundant_before()


def test_what_is_before_the_oldest_last_snapshot_is_redundant() -> None:
    runner = Runner()
    other = KEY._replace(partition=1)
    assert runner.shard.redundant_before() == 0
    runner.initialize()
    runner.initialize(key=other)
    assert runner.shard.redundant_before() == 0
    for _ in range(4):
        runner.write()  # the last one is a snapshot, at offset 5
    assert runner.shard.redundant_before() == 1
    for _ in range(4):
        runner.write(key=other)  # the last one is a snapshot, at offset 9
    assert runner.shard.redundant_before() == 5
    runner.delete()
    assert runner.shard.redundant_before() == 9
    runner.delete(other)
    assert runner.shard.redundant_before() == len(runner.log)


def test_the_snapshots_of_cold_partitions_are_written_again() -> None:
    runner = Runner()
    cold = KEY._replace(partition=1)
    runner.initialize(start_offset=5, key=cold)
    before = runner.state(cold)
    runner.now += 300_000
    runner.initialize()

    runner.perform(runner.shard.snapshot_cold(runner.now))

    key, value = runner.records()[-1]
    assert isinstance(key, ShareSnapshotKey) and isinstance(value, ShareSnapshotValue)
    assert (key.partition, value.snapshot_epoch, value.start_offset) == (1, 1, 5)
    assert (value.create_timestamp, value.write_timestamp) == (before.create_timestamp, runner.now)
    assert runner.shard.redundant_before() == 1


def test_in_a_quiet_log_no_snapshot_is_written_again() -> None:
    runner = Runner()
    runner.initialize()
    runner.now += 300_000
    runner.perform(runner.shard.snapshot_cold(runner.now))
    assert len(runner.log) == 2

    runner.now += 300_000
    runner.perform(runner.shard.snapshot_cold(runner.now))

    assert len(runner.log) == 2


def test_an_update_without_its_snapshot_is_the_best_that_is_known() -> None:
    runner = Runner()
    runner.initialize(start_offset=0)
    runner.write(StateBatch(0, 4, 2, 1), start_offset=0, done=5)

    state = runner.replayed(1).get(KEY)

    assert state is not None
    assert (state.start_offset, state.batches) == (0, (StateBatch(0, 4, 2, 1),))


def test_replaying_without_offsets_counts_on() -> None:
    runner = Runner()
    runner.initialize()
    shard = runner.new_shard()
    for record in runner.records():
        shard.replay(*record)

    assert shard.get(KEY) == runner.state()
