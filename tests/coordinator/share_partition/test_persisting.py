from __future__ import annotations

import pytest

from kohort.coordinator.share_partition import (
    UNKNOWN_START_OFFSET,
    PersistedState,
    RecordState,
    SharePartition,
    SharePartitionSettings,
    StateBatch,
)
from tests.coordinator.share_partition.partitions import ACCEPT, RELEASE, acknowledged, fetch, new, states


def test_a_group_that_never_read_begins_where_it_is_told_and_persists_that() -> None:
    partition = SharePartition(SharePartitionSettings(), PersistedState(3, UNKNOWN_START_OFFSET), 17)
    assert (partition.start_offset, partition.next_fetch_offset, partition.state_epoch) == (17, 17, 3)
    change = partition.flush()
    assert (change.needs_write, change.start_offset) == (True, 17)
    assert not partition.flush().needs_write
    partition.rollback(change)
    assert partition.flush().needs_write


def test_loading_moves_the_start_offset_past_what_is_done() -> None:
    partition = new(
        StateBatch(10, 14, RecordState.ACKNOWLEDGED, 1),
        StateBatch(15, 19, RecordState.ARCHIVED, 5),
        StateBatch(20, 24, RecordState.AVAILABLE, 2),
        StateBatch(25, 29, RecordState.ACKNOWLEDGED, 1),
        start=10,
    )
    assert (partition.start_offset, partition.end_offset, partition.delivery_complete_count) == (20, 29, 5)
    assert fetch(partition, (0, 29)) == [(20, 24, 3)]


def test_loading_without_anything_left_to_do() -> None:
    partition = new(StateBatch(10, 14, RecordState.ACKNOWLEDGED, 1), start=10)
    assert (partition.start_offset, partition.next_fetch_offset) == (15, 15)


@pytest.mark.parametrize(
    "batches",
    [
        [StateBatch(5, 9, RecordState.AVAILABLE, 1)],
        [StateBatch(10, 14, RecordState.AVAILABLE, 1), StateBatch(14, 16, RecordState.AVAILABLE, 1)],
        [StateBatch(12, 11, RecordState.AVAILABLE, 1)],
        [StateBatch(10, 14, 9, 1)],  # type: ignore[arg-type]
    ],
)
def test_persisted_states_that_contradict_each_other(batches: list[StateBatch]) -> None:
    with pytest.raises(ValueError, match=r"offset|RecordState"):
        new(*batches, start=10)


def test_a_snapshot_has_no_locks() -> None:
    partition = new()
    fetch(partition, (0, 9))
    acknowledged(partition, 0, 9, *[ACCEPT] * 2, *[RELEASE] * 8)
    fetch(partition, (0, 4))
    assert states(partition) == [(2, 4, "ACQUIRED", 2), (5, 9, "AVAILABLE", 1)]
    fetch(partition, (10, 19), at=10)
    assert partition.snapshot() == PersistedState(1, 2, 0, (StateBatch(2, 9, RecordState.AVAILABLE, 1),))
