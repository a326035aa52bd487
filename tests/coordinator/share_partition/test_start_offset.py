"""The start offset, when the log's beginning moves past it."""

from __future__ import annotations

from tests.coordinator.share_partition.partitions import (
    ACCEPT,
    LOCK_MS,
    RELEASE,
    acknowledge,
    acknowledged,
    fetch,
    new,
    persisted,
    states,
)


def test_nothing_in_flight() -> None:
    partition = new()
    assert partition.advance_start(20).needs_write
    assert (partition.start_offset, partition.end_offset, partition.next_fetch_offset) == (20, 19, 20)


def test_it_never_goes_back() -> None:
    partition = new(start=10)
    assert not partition.advance_start(5).needs_write
    assert partition.start_offset == 10


def test_past_all_that_is_in_flight() -> None:
    partition = new()
    fetch(partition, (0, 9))
    acknowledged(partition, 5, 9, RELEASE)
    partition.commit(partition.advance_start(30))
    assert (partition.next_fetch_offset, partition.in_flight_batches, partition.delivery_complete_count) == (30, 0, 0)
    assert partition.next_lock_deadline is None
    assert not partition.holds("a")


def test_within_a_batch() -> None:
    partition = new()
    fetch(partition, (0, 9), (10, 19), size=10)
    acknowledged(partition, 2, 3, ACCEPT)
    acknowledged(partition, 12, 17, ACCEPT)
    partition.advance_start(15)
    assert (partition.start_offset, partition.delivery_complete_count) == (18, 0)
    assert states(partition) == [(18, 19, "ACQUIRED", 1)]
    assert persisted(partition.expire_locks(LOCK_MS)) == [(18, 19, "AVAILABLE", 1)]


def test_available_records_after_it_are_found() -> None:
    partition = new()
    fetch(partition, (0, 9))
    acknowledged(partition, 0, 9, RELEASE)
    partition.advance_start(5)
    assert partition.next_fetch_offset == 5
    assert fetch(partition, (0, 9)) == [(5, 9, 2)]


def test_acknowledging_what_it_passed_is_no_error() -> None:
    partition = new()
    fetch(partition, (0, 9))
    partition.advance_start(5)
    assert persisted(acknowledge(partition, 0, 9, ACCEPT)) == [(5, 9, "ACKNOWLEDGED", 1)]
    partition.advance_start(50)
    assert not acknowledge(partition, 0, 9, ACCEPT).needs_write


def test_changes_under_way_end_well() -> None:
    partition = new()
    fetch(partition, (0, 9))
    committed, failed = acknowledge(partition, 0, 4, ACCEPT), acknowledge(partition, 5, 9, ACCEPT)
    partition.advance_start(7)
    assert partition.delivery_complete_count == 3
    partition.commit(committed)
    assert partition.delivery_complete_count == 3
    partition.rollback(failed)
    assert partition.delivery_complete_count == 0
    assert states(partition) == [(7, 9, "ACQUIRED", 1)]
    assert partition.next_lock_deadline == LOCK_MS


def test_a_release_under_way() -> None:
    partition = new()
    fetch(partition, (0, 9))
    change = acknowledge(partition, 0, 9, RELEASE)
    partition.advance_start(5)
    assert partition.commit(change)
    assert partition.next_fetch_offset == 5
