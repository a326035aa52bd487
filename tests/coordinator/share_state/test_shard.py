"""The share coordinator, rule by rule: what each request answers, refuses and writes."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from kohort.coordinator.share_state import (
    Outcome,
    ReadOutcome,
    SharePartitionKey,
    ShareStateSettings,
    StateBatch,
    Summary,
)
from kohort.coordinator.step import Step
from kohort.protocol.errors import ErrorCode
from kohort.protocol.stored.share_snapshot import ShareSnapshotKey, ShareSnapshotValue
from kohort.protocol.stored.share_update import ShareUpdateKey, ShareUpdateValue
from tests.coordinator.share_state.runner import KEY, TOPIC, Runner

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4

Ask = Callable[[Runner, SharePartitionKey], tuple[ErrorCode, str | None]]


def test_initializing_writes_a_snapshot() -> None:
    runner = Runner()

    assert runner.initialize(state_epoch=5, start_offset=-1) == Outcome()

    ((key, value),) = runner.records()
    assert key == ShareSnapshotKey(group_id="g", topic_id=TOPIC, partition=0)
    assert value == ShareSnapshotValue(
        snapshot_epoch=0,
        state_epoch=5,
        leader_epoch=0,
        start_offset=-1,
        delivery_complete_count=-1,
        create_timestamp=1_000,
        write_timestamp=1_000,
        state_batches=[],
    )


def test_initializing_at_an_offset_counts_what_is_done_from_there() -> None:
    runner = Runner()

    runner.initialize(start_offset=100)

    assert runner.summary() == Summary(state_epoch=1, leader_epoch=0, start_offset=100, delivery_complete_count=0)


def test_initializing_again_begins_anew() -> None:
    runner = Runner()
    runner.initialize()
    runner.write(StateBatch(0, 9, AVAILABLE, 1), start_offset=0)

    assert runner.initialize(state_epoch=2, start_offset=50) == Outcome()

    assert runner.read() == ReadOutcome(state_epoch=2, start_offset=50, delivery_complete_count=0)
    assert runner.state().snapshot_epoch == 1
    assert runner.initialize(state_epoch=1).error_code == ErrorCode.FENCED_STATE_EPOCH
    assert runner.initialize(state_epoch=-1) == Outcome()


def test_a_write_is_an_update_with_the_last_snapshots_epoch() -> None:
    runner = Runner()
    runner.initialize()

    assert runner.write(StateBatch(0, 9, ARCHIVED, 5), start_offset=0, done=10) == Outcome()

    key, value = runner.records()[-1]
    assert key == ShareUpdateKey(group_id="g", topic_id=TOPIC, partition=0)
    assert value == ShareUpdateValue(
        snapshot_epoch=0,
        leader_epoch=0,
        start_offset=0,
        delivery_complete_count=10,
        state_batches=[
            ShareUpdateValue.StateBatch(first_offset=0, last_offset=9, delivery_state=ARCHIVED, delivery_count=5)
        ],
    )


def test_what_is_written_is_read_combined_and_from_the_start_offset_on() -> None:
    runner = Runner()
    runner.initialize()
    runner.write(StateBatch(0, 9, AVAILABLE, 1), start_offset=0)
    runner.write(StateBatch(5, 7, ACKNOWLEDGED, 1))
    runner.write(start_offset=2)

    assert runner.read() == ReadOutcome(
        state_epoch=1,
        start_offset=2,
        batches=(
            StateBatch(2, 4, AVAILABLE, 1),
            StateBatch(5, 7, ACKNOWLEDGED, 1),
            StateBatch(8, 9, AVAILABLE, 1),
        ),
        delivery_complete_count=0,
    )


def test_after_enough_updates_a_snapshot_is_written() -> None:
    runner = Runner()
    runner.initialize()
    for offset in range(8):
        runner.write(StateBatch(offset, offset, ACKNOWLEDGED, 1), start_offset=0, done=offset + 1)

    kinds = ["snapshot" if isinstance(key, ShareSnapshotKey) else "update" for key, _ in runner.records()]
    assert kinds == ["snapshot", *["update"] * 3, "snapshot", *["update"] * 3, "snapshot"]
    assert runner.records()[4].value == ShareSnapshotValue(
        snapshot_epoch=1,
        state_epoch=1,
        leader_epoch=0,
        start_offset=0,
        delivery_complete_count=4,
        create_timestamp=1_004,
        write_timestamp=1_004,
        state_batches=[
            ShareSnapshotValue.StateBatch(first_offset=0, last_offset=3, delivery_state=ACKNOWLEDGED, delivery_count=1)
        ],
    )


def test_without_updates_every_write_is_a_snapshot() -> None:
    runner = Runner(ShareStateSettings(share_coordinator_snapshot_update_records_per_snapshot=0))
    runner.initialize()
    runner.write(start_offset=4)

    assert [type(key) for key, _ in runner.records()] == [ShareSnapshotKey] * 2
    assert runner.read().start_offset == 4


def test_a_newer_leader_that_reads_fences_its_predecessors() -> None:
    runner = Runner()
    runner.initialize()

    assert runner.read(leader_epoch=3).error_code == ErrorCode.NONE
    records = len(runner.log)

    assert runner.summary().leader_epoch == 3
    assert runner.read(leader_epoch=2).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert runner.write(leader_epoch=2).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert runner.read(leader_epoch=3).error_code == runner.read(leader_epoch=-1).error_code == ErrorCode.NONE
    assert len(runner.log) == records  # nothing new to remember
    assert runner.write(leader_epoch=-1) == Outcome()
    runner.initialize(state_epoch=2)
    assert runner.write(leader_epoch=2, state_epoch=2).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_writes_with_an_older_state_epoch_are_fenced_after_those_of_older_leaders() -> None:
    runner = Runner()
    runner.initialize(state_epoch=4)
    runner.read(leader_epoch=1)

    assert runner.write(state_epoch=3, leader_epoch=0).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert runner.write(state_epoch=3, leader_epoch=1).error_code == ErrorCode.FENCED_STATE_EPOCH
    assert runner.write(state_epoch=-1, leader_epoch=1) == Outcome()


def test_a_deleted_state_is_as_if_it_had_never_been() -> None:
    runner = Runner()
    runner.initialize()

    assert runner.delete() == Outcome()

    assert runner.records()[-1] == (ShareSnapshotKey(group_id="g", topic_id=TOPIC, partition=0), None)
    assert runner.read().error_code == ErrorCode.INVALID_REQUEST
    assert runner.summary() == Summary(start_offset=-1)
    records = len(runner.log)
    assert runner.delete() == Outcome()
    assert len(runner.log) == records


ASK: dict[str, Ask] = {
    "initialize": lambda runner, key: runner.initialize(key=key)[:2],
    "read": lambda runner, key: runner.read(key=key)[:2],
    "write": lambda runner, key: runner.write(key=key)[:2],
    "summary": lambda runner, key: runner.summary(key=key)[:2],
    "delete": lambda runner, key: runner.delete(key=key)[:2],
}


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
def test_partitions_that_are_not_there(ask: Ask) -> None:
    runner = Runner()
    beyond, gone = KEY._replace(partition=2), KEY._replace(topic_id=UUID(int=8))
    runner.topics[gone.topic_id] = 1
    for key in (beyond, gone):
        runner.initialize(key=key)
    runner.topics = {TOPIC: 2}

    assert ask(runner, beyond)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(runner, gone)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    code, message = ask(runner, KEY._replace(partition=-1))
    assert (code, message) == (ErrorCode.INVALID_REQUEST, "The number of the partition is negative.")


@pytest.mark.parametrize("ask", [ASK["read"], ASK["write"]], ids=["read", "write"])
def test_a_state_must_be_initialized_first(ask: Ask) -> None:
    code, message = ask(Runner(), KEY)

    assert code == ErrorCode.INVALID_REQUEST
    assert message is not None and message.endswith("it isn't initialized.")


@pytest.mark.parametrize("batch", [StateBatch(5, 4, 0, 1), StateBatch(-3, 4, 0, 1)])
def test_batches_that_are_no_ranges_are_refused(batch: StateBatch) -> None:
    runner = Runner()
    runner.initialize()

    assert runner.write(batch).error_code == ErrorCode.INVALID_REQUEST
    assert len(runner.log) == 1


@pytest.mark.parametrize("ask", [ASK["initialize"], ASK["write"], ASK["delete"]], ids=["initialize", "write", "delete"])
def test_what_can_not_be_appended_changes_nothing(ask: Ask) -> None:
    runner = Runner()
    runner.initialize()
    before = runner.state()
    runner.broken = True

    assert ask(runner, KEY) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "COORDINATOR_NOT_AVAILABLE")
    assert runner.read(leader_epoch=9).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    assert runner.state() == before


def test_with_a_topic_its_states_are_deleted() -> None:
    runner = Runner()
    other = SharePartitionKey("g", UUID(int=8), 0)
    runner.topics[other.topic_id] = 1
    for key in (KEY, KEY._replace(group_id="h"), other):
        runner.initialize(key=key)

    del runner.topics[TOPIC]
    runner.perform(runner.shard.delete_orphans())

    assert len(runner.shard) == 1
    assert runner.shard.get(other) is not None


def test_states_of_a_deleted_topic_that_do_not_fit_into_one_batch_are_deleted_by_several_runs() -> None:
    runner = Runner()
    for number in range(400):
        runner.initialize(key=SharePartitionKey(f"{number}" + "g" * 30_000, TOPIC, 0))
    del runner.topics[TOPIC]
    runs = 0
    while step := runner.shard.delete_orphans().records:
        runner.perform(Step(step))
        runs += 1
    assert runs > 1
    assert len(runner.shard) == 0


@pytest.mark.parametrize(
    "text",
    ["", "g", "g:AAAAAAAAAAAAAAAAAAAABw", "g:nonsense:0", "g:AAAAAAAAAAAAAAAAAAAABw:x", " :AAAAAAAAAAAAAAAAAAAABw:0"],
)
def test_texts_that_are_no_keys(text: str) -> None:
    with pytest.raises(ValueError, match="isn't"):
        SharePartitionKey.parse(text)


@pytest.mark.parametrize("key", [KEY, SharePartitionKey("a:b", UUID(int=2**128 - 1), 2**31 - 1)])
def test_keys_as_text(key: SharePartitionKey) -> None:
    assert SharePartitionKey.parse(str(key)) == key


def test_the_text_of_a_key_is_kafkas() -> None:
    assert str(KEY) == "g:AAAAAAAAAAAAAAAAAAAABw:0"
